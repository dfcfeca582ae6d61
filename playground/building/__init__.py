"""What is built from source, once per user: control planes, programs of nodes, images, tools."""
