"""Layout of a mapped netlist: placement, routing, GDS, design rules and connectivity."""
