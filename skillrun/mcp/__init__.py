"""MCP: skills as tools of the Model Context Protocol, and tools of other servers. Needs `skillrun-sandbox[mcp]`."""
