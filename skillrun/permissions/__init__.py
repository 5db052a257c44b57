"""Capabilities and their algebra: request, ceiling and layers, resolve, intersect, trust."""
