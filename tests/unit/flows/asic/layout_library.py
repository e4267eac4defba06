"""A library of our own with a few cells, for layouts without a download."""

#: The technology: five metals on the grid of a usual 45 nm process.
TECHNOLOGY = """
VERSION 5.6 ;
UNITS
  DATABASE MICRONS 2000 ;
END UNITS
MANUFACTURINGGRID 0.0025 ;
LAYER poly
  TYPE MASTERSLICE ;
END poly
""" + "".join(
    f"""
LAYER metal{n}
  TYPE ROUTING ;
  {"SPACING 0.065" if n == 1 else f"SPACINGTABLE PARALLELRUNLENGTH 0 0.3 WIDTH 0 {space} {space} "
   f"WIDTH {1.5 * width:.3f} {space} {2 * space:.2f}"} ;
  WIDTH {width} ;
  PITCH {pitch} ;
  OFFSET 0.095 0.07 ;
  DIRECTION {"HORIZONTAL" if n % 2 else "VERTICAL"} ;
  CAPACITANCE CPERSQDIST 4e-05 ;
  EDGECAPACITANCE {n}e-05 ;
END metal{n}
"""
    + (
        f"""
LAYER via{n}
  TYPE CUT ;
  SPACING {0.16 if n == 4 else 0.09} ;
  WIDTH {0.14 if n == 4 else 0.07} ;
END via{n}
"""
        if n < 5
        else ""
    )
    for n, width, space, pitch in (
        (1, 0.07, 0.065, 0.14), (2, 0.07, 0.07, 0.19), (3, 0.07, 0.07, 0.14),
        (4, 0.14, 0.14, 0.28), (5, 0.14, 0.14, 0.28),
    )
) + "".join(
    f"""
VIA {name} DEFAULT
  LAYER metal{n} ;
    RECT -{low[0]} -{low[1]} {low[0]} {low[1]} ;
  LAYER via{n} ;
    RECT -{cut} -{cut} {cut} {cut} ;
  LAYER metal{n + 1} ;
    RECT -{high[0]} -{high[1]} {high[0]} {high[1]} ;
END {name}
"""
    for name, n, cut, low, high in (
        ("V1_fat", 1, 0.035, (0.07, 0.07), (0.07, 0.07)),
        ("V1_tall", 1, 0.035, (0.035, 0.07), (0.035, 0.07)),
        ("V1_wide", 1, 0.035, (0.07, 0.035), (0.035, 0.07)),
        ("V2", 2, 0.035, (0.035, 0.07), (0.07, 0.035)),
        ("V3", 3, 0.035, (0.07, 0.035), (0.07, 0.07)),
        ("V4", 4, 0.07, (0.07, 0.07), (0.07, 0.07)),
    )
) + """
SITE unit
  SIZE 0.19 BY 1.4 ;
END unit
END LIBRARY
"""  # fmt: skip

#: Cell -> its width in sites, and the left, bottom, right and top of each pin in microns.
SHAPES = {
    "INV_X1": (3, {"A": (0.06, 0.49, 0.13, 0.77), "ZN": (0.44, 0.3, 0.51, 1.1)}),
    "NAND2_X1": (
        4,
        {
            "A1": (0.06, 0.5, 0.13, 0.77),
            "A2": (0.215, 0.595, 0.355, 0.665),
            "ZN": (0.63, 0.3, 0.7, 1.1),
        },
    ),
    "BUF_X4": (3, {"A": (0.06, 0.49, 0.13, 0.77), "Z": (0.44, 0.3, 0.51, 1.1)}),
    "LOGIC0_X1": (2, {"Z": (0.06, 0.3, 0.13, 1.1)}),
    "LOGIC1_X1": (2, {"Z": (0.06, 0.3, 0.13, 1.1)}),
    "WELLTAP_X1": (2, {}),
    "FILLCELL_X1": (1, {}),
}


def _cell(name: str, sites: int, pins: dict[str, tuple[float, ...]]) -> str:
    width = 0.19 * sites
    rails = {"VSS": (0, -0.085, width, 0.085), "VDD": (0, 1.315, width, 1.485)}
    uses = {"VSS": "ground", "VDD": "power"}
    text = f"MACRO {name}\n  CLASS core ;\n  SIZE {width:.2f} BY 1.4 ;\n"
    for pin, (x0, y0, x1, y1) in {**pins, **rails}.items():
        way = "INOUT" if pin in uses else "OUTPUT" if pin[0] == "Z" else "INPUT"
        shape = f"POLYGON {x0} {y0} {x1:.3f} {y0} {x1:.3f} {y1} {x0} {y1}"
        text += f"  PIN {pin}\n    DIRECTION {way} ;\n"
        text += f"    USE {uses[pin]} ;\n" if pin in uses else ""
        text += f"    PORT\n      LAYER metal1 ;\n        {shape} ;\n    END\n  END {pin}\n"
    return text + f"END {name}\n"


#: The LEF of the cells.
CELLS = "".join(_cell(name, *shape) for name, shape in SHAPES.items()) + "END LIBRARY\n"

#: Constant -> the cell that drives it, and its output.
TIES = {"0": ("LOGIC0_X1", "Z"), "1": ("LOGIC1_X1", "Z")}
