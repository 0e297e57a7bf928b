"""What is required of quantised weights, sentence by sentence."""

from __future__ import annotations

from typing import Any

from inferspec.spec.contract import Aspect, Level, Requirement


def _about(name: str) -> Any:
    def sentence(
        id: str, text: str, source: str, level: Level = Level.MUST, aspect: Aspect = Aspect.VALUE
    ) -> Requirement:
        return Requirement(id, text, name, level, aspect, source)

    return sentence


_quantize = _about("quantize")
QUANT_01 = _quantize(
    "QUANT-01",
    "each weight comes back within half a step of its group's grid, but for the rounding of scale and bias; one that lies outside the grid comes back as the grid's end; codes lie in uint32 words, the first in the lowest bits",
    "PROPERTIES QZ1, QZ2; tiny-llm course, week 2 day 2",
)
QUANT_02 = _quantize(
    "QUANT-02",
    "the grid fits its group: no step is larger than an affine grid of the group's range needs when it puts 0 on a multiple of it, and no weight lies farther outside than that rounding of its zero point costs",
    "PROPERTIES QZ1; mlx affine_quantize",
)
QUANT_03 = _quantize(
    "QUANT-03",
    "the grid reaches every weight of its group, so that none is more than half a step off",
    "PROPERTIES QZ1; tiny-llm course, week 2 day 2",
    Level.SHOULD,
)
QUANT_04 = _quantize(
    "QUANT-04",
    "a group of one value comes back exactly, zeros too, and weights near the ends of the dtype come back finite",
    "mlx ec8578d41; PROPERTIES QZ1",
)
QUANT_05 = _quantize(
    "QUANT-05", "each group is quantised for itself: other groups and more rows change nothing of it", "PROPERTIES QZ7"
)
QUANT_06 = _quantize("QUANT-06", "w may be a strided view: the result is that of its copy", "PROPERTIES X1")
QUANT_07 = _quantize(
    "QUANT-07",
    "packed is O×(I·bits/32) uint32; scales and biases are O×(I/group_size) in the dtype of w",
    "PROPERTIES X4, QZ2",
    aspect=Aspect.DTYPE,
)
QUANT_08 = _quantize("QUANT-08", "w is not changed", "PROPERTIES X6")
QUANT_09 = _quantize(
    "QUANT-09",
    "a call depends on its arguments alone: repeated, it is the same bit for bit, whatever ran in between",
    "PROPERTIES X7, X11",
)
QUANT_10 = _quantize(
    "QUANT-10",
    "a number of bits above 0 that is not offered, and rows that are not whole groups, are refused",
    "PROPERTIES X9",
    aspect=Aspect.GUARD,
)
QUANT_11 = _quantize(
    "QUANT-11", "every number of rows and groups is right, past 32768 rows too", "PROPERTIES X2, X8, X10"
)
QUANT_12 = _quantize(
    "QUANT-12", "w may have leading dims, as the stacked weights of experts have", "mlx quantize", Level.SHOULD
)
QUANT_13 = _quantize("QUANT-13", "no rows give no rows", "PROPERTIES X3", Level.SHOULD)
QUANT_14 = _quantize(
    "QUANT-14", "a group size or number of bits of 0 and below is refused", "PROPERTIES X9", Level.SHOULD, Aspect.GUARD
)
QUANT_15 = _quantize(
    "QUANT-15",
    "a group size above 0 that is not offered is refused, even where rows would be whole groups of it (groups of 48 or 96 may be right)",
    "PROPERTIES X9",
    Level.SHOULD,
    Aspect.GUARD,
)

_dequantize = _about("dequantize")
DEQ_01 = _dequantize(
    "DEQ-01",
    "every pattern of codes means itself: 2, 4 or 8 bits without sign, the first in the lowest bits of its word",
    "PROPERTIES QZ2",
)
DEQ_02 = _dequantize(
    "DEQ-02", "each group of neighbours in a row has its own scale and bias: code · scale + bias", "PROPERTIES QZ2"
)
DEQ_03 = _dequantize("DEQ-03", "a weight is evaluated in float32 and rounded once", "mlx 56e026d8a; PROPERTIES QZ4")
DEQ_04 = _dequantize(
    "DEQ-04", "the parts may have leading dims, as the stacked weights of experts have", "mlx dequantize", Level.SHOULD
)
DEQ_05 = _dequantize(
    "DEQ-05",
    "packed, scales and biases may each be a strided view: the result is that of their copies",
    "PROPERTIES X1",
)
DEQ_06 = _dequantize(
    "DEQ-06", "the result is O×I in the dtype of the scales", "mlx-lm c592f76f; PROPERTIES X4", aspect=Aspect.DTYPE
)
DEQ_07 = _dequantize("DEQ-07", "no argument is changed", "PROPERTIES X6")
DEQ_08 = _dequantize(
    "DEQ-08",
    "a call depends on its arguments alone: repeated, it is the same bit for bit, whatever ran in between",
    "PROPERTIES X7, X11",
)
DEQ_09 = _dequantize(
    "DEQ-09",
    "parts whose shapes do not belong together, a packed that is not uint32 (signed or wider words of the same bits may be read), and a group size or number of bits above 0 that is not offered, are refused",
    "PROPERTIES X9",
    aspect=Aspect.GUARD,
)
DEQ_10 = _dequantize(
    "DEQ-10", "every number of rows and groups is right, past 32768 rows too", "PROPERTIES X2, X8, X10"
)
DEQ_11 = _dequantize("DEQ-11", "no rows give no rows", "PROPERTIES X3", Level.SHOULD)
DEQ_12 = _dequantize(
    "DEQ-12", "a group size or number of bits of 0 and below is refused", "PROPERTIES X9", Level.SHOULD, Aspect.GUARD
)
DEQ_13 = _dequantize(
    "DEQ-13",
    "where nothing is said, groups are of 128 weights and codes of 4 bits",
    "tiny-llm course, week 2 day 2",
    Level.SHOULD,
)

_matmul = _about("quantized_matmul")
QMM_01 = _matmul("QMM-01", "the result is x · wᵀ for the weights w that the parts stand for", "PROPERTIES QZ3")
QMM_02 = _matmul("QMM-02", "it is x · w when transpose is false", "PROPERTIES QZ3")
QMM_03 = _matmul(
    "QMM-03",
    "weights are restored and sums accumulated in float32 in every dtype, also over thousands of features",
    "PROPERTIES QZ4, X5",
)
QMM_04 = _matmul("QMM-04", "each feature of each output is read by its own code, scale and bias", "PROPERTIES QZ3, QZ2")
QMM_05 = _matmul(
    "QMM-05", "a batch is the stack of its rows, for any leading dims, none too", "mlx c7b0300af; PROPERTIES X3"
)
QMM_06 = _matmul(
    "QMM-06",
    "every number of rows, outputs and groups is right both ways, also just beside tile sizes, and every output is written",
    "mlx#665, mlx 5f9ba3019, mlx aca758463, mlx#4250, mlx 90e38f7b9, mlx 6c0ea7fb0; PROPERTIES X2, X10",
)
QMM_07 = _matmul("QMM-07", "so are more than 32768 outputs or rows", "mlx c9e8ee6b6; PROPERTIES X8, QZ6")
QMM_08 = _matmul(
    "QMM-08",
    "an output depends on its own row of weights (its own group when not transposed) and of x alone: a NaN elsewhere does not reach it, and fewer outputs are the first of more",
    "PROPERTIES QZ7, X3",
)
QMM_09 = _matmul(
    "QMM-09", "every array may be a strided view: the result is that of their copies", "mlx#3480; PROPERTIES X1"
)
QMM_10 = _matmul(
    "QMM-10",
    "the result is N..×O (N..×I when not transposed) in the dtype of x",
    "PROPERTIES X4",
    aspect=Aspect.DTYPE,
)
QMM_11 = _matmul("QMM-11", "no argument is changed", "PROPERTIES X6")
QMM_12 = _matmul(
    "QMM-12",
    "a call depends on its arguments alone: repeated, it is the same bit for bit, whatever ran in between",
    "PROPERTIES X7, X11",
)
QMM_13 = _matmul(
    "QMM-13",
    "parts whose shapes do not belong together, an x of another size, a packed that is not uint32 (signed or wider words of the same bits may be read), and a group size or number of bits above 0 that is not offered, are refused",
    "PROPERTIES X9",
    aspect=Aspect.GUARD,
)
QMM_14 = _matmul(
    "QMM-14",
    "parts with leading dims are broadcast with those of x, as grouped heads of a quantised cache need",
    "mlx#3480; PROPERTIES QZ5",
    Level.SHOULD,
)
QMM_15 = _matmul("QMM-15", "no rows give no outputs", "PROPERTIES X3")
QMM_16 = _matmul(
    "QMM-16",
    "scales and biases in float32 beside an x in half precision are refused, or read for their numbers",
    "PROPERTIES X9",
    Level.SHOULD,
    Aspect.GUARD,
)
QMM_17 = _matmul(
    "QMM-17", "a group size or number of bits of 0 and below is refused", "PROPERTIES X9", Level.SHOULD, Aspect.GUARD
)
QMM_18 = _matmul(
    "QMM-18",
    "where nothing is said, groups are of 128 weights and codes of 4 bits",
    "tiny-llm course, week 2 day 2",
    Level.SHOULD,
)
QMM_19 = _matmul(
    "QMM-19",
    "parts with the leading dims of x are multiplied each for itself, or refused",
    "mlx#3480; PROPERTIES QZ5",
)

_layer = _about("QuantizedLinear")
QLIN_01 = _layer("QLIN-01", "the layer is x · wᵀ + bias for the weights that its parts stand for", "PROPERTIES QZ3")
QLIN_02 = _layer("QLIN-02", "the bias is added exactly once to every row, and None adds nothing", "PROPERTIES X13")
QLIN_03 = _layer(
    "QLIN-03",
    "weights are restored and sums accumulated in float32 in every dtype, also over thousands of features",
    "PROPERTIES QZ4, X5",
)
QLIN_04 = _layer("QLIN-04", "a batch is the stack of its rows, for any leading dims, none too", "PROPERTIES X3")
QLIN_05 = _layer("QLIN-05", "every array may be a strided view: the result is that of their copies", "PROPERTIES X1")
QLIN_06 = _layer("QLIN-06", "the result is N..×O in the dtype of x", "PROPERTIES X4", aspect=Aspect.DTYPE)
QLIN_07 = _layer("QLIN-07", "no argument is changed", "PROPERTIES X6")
QLIN_08 = _layer(
    "QLIN-08",
    "a call depends on its arguments alone: repeated, it is the same bit for bit, whatever ran in between",
    "PROPERTIES X7, X11",
)
QLIN_09 = _layer(
    "QLIN-09",
    "parts whose shapes do not belong together, a packed that is not uint32 (signed or wider words of the same bits may be read), a group size or number of bits above 0 that is not offered, an x of another size and a bias of another length than O are refused; one of length 1, which broadcasts, is left open",
    "PROPERTIES X9",
    aspect=Aspect.GUARD,
)
QLIN_10 = _layer("QLIN-10", "no rows give no rows", "PROPERTIES X3")
QLIN_11 = _layer(
    "QLIN-11", "an output depends on its own row of weights: a NaN in another does not reach it", "PROPERTIES QZ7"
)
QLIN_12 = _layer(
    "QLIN-12",
    "scales and biases, and a bias, in float32 beside an x in half precision are refused, or read for their numbers",
    "PROPERTIES X9",
    Level.SHOULD,
    Aspect.GUARD,
)
QLIN_13 = _layer(
    "QLIN-13", "a group size or number of bits of 0 and below is refused", "PROPERTIES X9", Level.SHOULD, Aspect.GUARD
)
QLIN_14 = _layer(
    "QLIN-14",
    "where nothing is said, groups are of 128 weights and codes of 4 bits",
    "tiny-llm course, week 2 day 2",
    Level.SHOULD,
)

_lookup = _about("QuantizedEmbedding")
QEMB_01 = _lookup("QEMB-01", "each token gives its restored row, rounded once", "PROPERTIES EM2, QZ4")
QEMB_02 = _lookup(
    "QEMB-02",
    "every id reads its own row, past 255, 32767 and 65535 too, whatever integers tokens are",
    "PROPERTIES X8",
)
QEMB_03 = _lookup("QEMB-03", "tokens of any shape are right, a scalar too, each in its place", "PROPERTIES X3")
QEMB_04 = _lookup(
    "QEMB-04", "tokens and parts may each be a strided view: the result is that of their copies", "PROPERTIES X1"
)
QEMB_05 = _lookup("QEMB-05", "the result is T..×E in the dtype of the scales", "PROPERTIES X4", aspect=Aspect.DTYPE)
QEMB_06 = _lookup("QEMB-06", "no argument is changed", "PROPERTIES X6")
QEMB_07 = _lookup(
    "QEMB-07",
    "a call depends on its arguments alone: repeated, it is the same bit for bit, whatever ran in between",
    "PROPERTIES X7, X11",
)
QEMB_08 = _lookup("QEMB-08", "ids outside 0 … V - 1 are refused", "PROPERTIES X9", Level.SHOULD, Aspect.GUARD)
QEMB_17 = _lookup("QEMB-17", "no tokens give no rows", "PROPERTIES EM2")
QEMB_22 = _lookup(
    "QEMB-22",
    "where nothing is said, groups are of 128 weights and codes of 4 bits",
    "tiny-llm course, week 2 day 2",
    Level.SHOULD,
)

_head = _about("QuantizedEmbedding.as_linear")
QEMB_09 = _head(
    "QEMB-09",
    "as_linear is x · tableᵀ for the very table that tokens are looked up in, with no hidden scale",
    "mlx-lm c27c94a0; PROPERTIES EM1, EM3",
)
QEMB_10 = _head(
    "QEMB-10", "as_linear restores the table and accumulates in float32 in every dtype", "PROPERTIES QZ4, X5"
)
QEMB_11 = _head(
    "QEMB-11", "as_linear takes any leading dims, and writes every logit, past 32768 too", "PROPERTIES X3, X8, QZ6"
)
QEMB_12 = _head("QEMB-12", "every array of as_linear may be a strided view", "PROPERTIES X1")
QEMB_13 = _head("QEMB-13", "the result of as_linear is N..×V in the dtype of x", "PROPERTIES X4", aspect=Aspect.DTYPE)
QEMB_14 = _head("QEMB-14", "as_linear changes no argument", "PROPERTIES X6")
QEMB_15 = _head(
    "QEMB-15",
    "as_linear depends on its arguments alone: repeated, it is the same bit for bit, whatever ran in between",
    "PROPERTIES X7, X11",
)
QEMB_16 = _head(
    "QEMB-16",
    "as_linear refuses an x of another size, parts whose shapes do not belong together, a packed that is not uint32 (signed or wider words of the same bits may be read), and a group size or number of bits above 0 that is not offered",
    "PROPERTIES X9",
    aspect=Aspect.GUARD,
)
QEMB_18 = _head("QEMB-18", "no rows of as_linear give no rows", "PROPERTIES X3")
QEMB_19 = _head(
    "QEMB-19", "a logit of as_linear depends on its own row: a NaN in another does not reach it", "PROPERTIES QZ7"
)
QEMB_20 = _head(
    "QEMB-20",
    "scales and biases in float32 beside an x of as_linear in half precision are refused, or read for their numbers",
    "PROPERTIES X9",
    Level.SHOULD,
    Aspect.GUARD,
)
QEMB_21 = _head(
    "QEMB-21",
    "as_linear refuses a group size or number of bits of 0 and below",
    "PROPERTIES X9",
    Level.SHOULD,
    Aspect.GUARD,
)

SENTENCES = tuple(value for value in list(globals().values()) if isinstance(value, Requirement))
