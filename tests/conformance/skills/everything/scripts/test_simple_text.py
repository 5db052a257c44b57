#!/usr/bin/env python3
print("This is a simple text response for testing.")
