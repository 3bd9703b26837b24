"""Stencils of our own in the idioms of CLOUDSC2 and ifs-physics-common.

Physics of columns: many fields of IJK, IJ and K, functions and constants as externals, temporaries.
"""

import numpy as np

from support.optional import library

library("gt4py.cartesian.gtscript")

from gt4py.cartesian.gtscript import (  # noqa: E402 (after the skip)
    FORWARD,
    IJ,
    PARALLEL,
    Field,
    K,
    computation,
    exp,
    function,
    interval,
)


@function
def saturation_pressure(t):
    from __externals__ import R2ES, R3IES, R3LES, R4IES, R4LES, RTT

    liquid = R2ES * exp(R3LES * (t - RTT) / (t - R4LES))
    ice = R2ES * exp(R3IES * (t - RTT) / (t - R4IES))
    return liquid if t > RTT else ice


@function
def condensed(q, qsat, rate):
    return rate * (q - qsat) if q > qsat else 0.0


EXTERNALS = {
    "RTT": 273.16,
    "R2ES": 380.0,
    "R3LES": 17.502,
    "R3IES": 22.587,
    "R4LES": 32.19,
    "R4IES": -0.7,
    "LEVAP": True,
    "saturation_pressure": saturation_pressure,
    "condensed": condensed,
}


def clouds(
    in_t: Field[np.float64],
    in_q: Field[np.float64],
    in_ap: Field[np.float64],
    in_aph: Field[np.float64],
    in_tnd_t: Field[np.float64],
    in_tnd_q: Field[np.float64],
    in_eta: Field[K, np.float64],
    in_land: Field[IJ, np.bool_],
    in_count: Field[IJ, np.int64],
    out_t: Field[np.float64],
    out_q: Field[np.float64],
    out_cover: Field[np.float64],
    out_rain: Field[np.float64],
    out_fallen: Field[IJ, np.float64],
    *,
    dt: np.float64,
):
    """Condense what is more than saturated, let it fall, and evaporate some of it below."""
    from __externals__ import LEVAP, condensed, saturation_pressure

    with computation(PARALLEL), interval(...):
        t = in_t + dt * in_tnd_t
        q = in_q + dt * in_tnd_q
        qsat = saturation_pressure(t) / in_ap
        if in_land:
            qsat = 0.9 * qsat
    with computation(FORWARD):
        with interval(0, 1):
            made = condensed(q, qsat, in_eta)
            out_rain = made * (in_aph[0, 0, 1] - in_aph)
        with interval(1, None):
            made = condensed(q, qsat, in_eta)
            gone = 0.0
            if __INLINED(LEVAP):  # noqa: F821 (of GT4Py)
                gone = 0.1 * out_rain[0, 0, -1] if made == 0.0 else 0.0
            out_rain = out_rain[0, 0, -1] - gone + made * (in_aph[0, 0, 1] - in_aph)
    with computation(PARALLEL), interval(...):
        out_t = t + 2.5 * made  # noqa: F841
        out_q = q - made  # noqa: F841
        out_cover = 1.0 if made > 0.0 else 0.0  # noqa: F841
    with computation(FORWARD), interval(-1, None):
        out_fallen = out_rain * in_count  # noqa: F841
