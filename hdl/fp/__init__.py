"""Floating-point units: dot products, and single operations.

The modules here are units. ``core`` has their back ends and ``parts`` the parts of their datapaths.
"""
