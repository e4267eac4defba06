"""Pages about machines: tables of instructions, drawn datapaths and worked examples."""
