"""Parts of the units' datapaths: decoders, multipliers, shifters, adders, rounding, stages."""
