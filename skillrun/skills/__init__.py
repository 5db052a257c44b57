"""What is on disk: front matter with places, discovery, scripts and their interpreters, digest."""
