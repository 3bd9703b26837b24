"""Devices, their driver, and memory there."""
