"""The backends of tracetool: what scripts ask of one of them is in `simple`."""
