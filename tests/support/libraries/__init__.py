"""Other libraries as producers and consumers of memory."""
