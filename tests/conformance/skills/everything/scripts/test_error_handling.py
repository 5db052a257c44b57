#!/usr/bin/env python3
import sys

sys.exit("This tool intentionally returns an error for testing")
