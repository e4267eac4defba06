"""The storage conversion unit: Im2Col and Col2Im between images in memory and fractal rows."""

from .address import AddressGenerator
from .col2im import Col2Im
from .config import ConversionConfig, Mode
from .im2col import Im2Col

__all__ = ["AddressGenerator", "Col2Im", "ConversionConfig", "Im2Col", "Mode"]
