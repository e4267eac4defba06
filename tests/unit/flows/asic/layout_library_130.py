"""A library of our own with what a 45 nm one lacks: least areas, tracks on the edges of cells.

Its vias are wider than wires, its cells need no taps, some pins lie between the tracks or are
narrower than a via, and the layers in GDS have datatypes of their own.
"""

from vitruvian.flows.asic.layout import lef

_SITE, _HEIGHT = 0.48, 3.78

TECHNOLOGY = """
VERSION 5.7 ;
UNITS
  DATABASE MICRONS 1000 ;
END UNITS
MANUFACTURINGGRID 0.005 ;
LAYER contact
  TYPE CUT ;
  WIDTH 0.16 ;
  SPACING 0.18 ;
END contact
""" + "".join(
    f"""
LAYER M{n}
  TYPE ROUTING ;
  DIRECTION {"HORIZONTAL" if n % 2 else "VERTICAL"} ;
  PITCH {0.42 if n % 2 else 0.48} ;
  OFFSET 0 ;
  WIDTH {0.16 if n == 1 else 0.2} ;
  AREA {0.09 if n == 1 else 0.144} ;
  SPACINGTABLE PARALLELRUNLENGTH 0 1 WIDTH 0 {space} {space} WIDTH 0.4 {space} {space + 0.04:.2f} ;
  CAPACITANCE CPERSQDIST 2e-05 ;
  EDGECAPACITANCE 4e-05 ;
END M{n}
"""
    + (
        f"""
LAYER C{n}
  TYPE CUT ;
  SPACING 0.22 ;
  SPACING 0.29 ADJACENTCUTS 3 WITHIN 0.311 ;
END C{n}
Via C{n}_{"XY" if n % 2 else "YX"} DEFAULT
  LAYER M{n} ;
    RECT {"-0.145 -0.105 0.145 0.105" if n % 2 else "-0.105 -0.145 0.105 0.145"} ;
  LAYER C{n} ;
    RECT -0.095 -0.095 0.095 0.095 ;
  LAYER M{n + 1} ;
    RECT {"-0.145 -0.1 0.145 0.1" if n % 2 == 0 else "-0.1 -0.145 0.1 0.145"} ;
END C{n}_{"XY" if n % 2 else "YX"}
"""
        if n < 5
        else ""
    )
    for n, space in ((1, 0.18), (2, 0.21), (3, 0.21), (4, 0.21), (5, 0.21))
) + f"""
SITE unit
  SIZE {_SITE} BY {_HEIGHT} ;
END unit
END LIBRARY
"""  # fmt: skip

#: Cell -> its width in sites, and the left, bottom, right and top of each pin in microns.
SHAPES = {
    "INV_X1": (4, {"A": (0.3, 1.5, 0.66, 1.9), "ZN": (1.28, 0.6, 1.6, 3.0)}),
    # A1 lies between two tracks, and A2 is narrower than a via.
    "NAND2_X1": (
        5,
        {
            "A1": (0.3, 1.72, 0.66, 2.02),
            "A2": (1.34, 1.3, 1.54, 1.9),
            "ZN": (1.77, 0.6, 2.07, 3.0),
        },
    ),
    "LOGIC0_X1": (2, {"Z": (0.3, 0.6, 0.66, 3.0)}),
    "LOGIC1_X1": (2, {"Z": (0.3, 0.6, 0.66, 3.0)}),
    "SPACE_1": (1, {}),
    "SPACE_2": (2, {}),
}


def rails(sites: int) -> dict[str, tuple[float, ...]]:
    """Return the shapes of the supplies of a cell."""
    width = _SITE * sites
    return {"GND": (0, -0.22, width, 0.22), "PWR": (0, _HEIGHT - 0.22, width, _HEIGHT + 0.22)}


def _cell(name: str, sites: int, pins: dict[str, tuple[float, ...]]) -> str:
    uses = {"GND": "GROUND", "PWR": "POWER"}
    kind = "CORE SPACER" if name.startswith("SPACE") else "CORE"
    text = f"MACRO {name}\n  CLASS {kind} ;\n  SIZE {_SITE * sites:.2f} BY {_HEIGHT} ;\n"
    for pin, (x0, y0, x1, y1) in {**pins, **rails(sites)}.items():
        way = "INOUT" if pin in uses else "OUTPUT" if pin[0] == "Z" else "INPUT"
        text += f"  PIN {pin}\n    DIRECTION {way} ;\n    USE {uses.get(pin, 'SIGNAL')} ;\n"
        text += f"    PORT\n      LAYER M1 ;\n        RECT {x0} {y0:.3f} {x1:.3f} {y1:.3f} ;\n"
        text += f"    END\n  END {pin}\n"
    return text + f"END {name}\n"


#: The LEF of the cells.
CELLS = "".join(_cell(name, *shape) for name, shape in SHAPES.items()) + "END LIBRARY\n"


def technology() -> lef.Technology:
    """Return the technology with its ties and layers in GDS."""
    known = lef.read(TECHNOLOGY, CELLS)
    known.ties = {"0": ("LOGIC0_X1", "Z"), "1": ("LOGIC1_X1", "Z")}
    for number, layer in enumerate(known.layers):
        metal = isinstance(layer, lef.RoutingLayer)
        known.gds[layer.name] = lef.GdsLayer(
            30 + 10 * number, label=25 if metal else 0, pin=2 if metal else None
        )
    return known
