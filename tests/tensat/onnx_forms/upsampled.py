"""The ways in which ONNX says that a tensor is enlarged by whole factors."""

from tests.tensat.onnx_forms.calls import Form, X, call
from tests.tensat.onnx_forms.models import constant

UPSAMPLED = [
    *[
        Form(
            f"resize-{mode}-{rounding}",
            call(
                "Resize",
                13,
                X,
                None,
                constant([1, 2, 3], "float32"),
                coordinate_transformation_mode=mode,
                nearest_mode=rounding,
            ),
            "Upsample",
            {"factors": (1, 2, 3)},
        )
        for mode, rounding in (
            ("half_pixel", "round_prefer_floor"),
            ("half_pixel", "round_prefer_ceil"),
            ("pytorch_half_pixel", "round_prefer_floor"),
            ("asymmetric", "floor"),
        )
    ],
    Form(
        "resize-nothing-said",
        call("Resize", 13, X, None, constant([1, 1, 2], "float32")),
        "Upsample",
        {"factors": (1, 1, 2)},
    ),
    Form(
        "resize-to-sizes",
        call("Resize", 13, X, None, None, constant([2, 6, 4])),
        "Upsample",
        {"factors": (1, 2, 1)},
    ),
    Form(
        "resize-some-axes",
        call(
            "Resize",
            18,
            X,
            None,
            constant([3], "float32"),
            axes=(-1,),
            antialias=0,
        ),
        "Upsample",
        {"factors": (1, 1, 3)},
    ),
    Form(
        "resize-old",
        call("Resize", 10, X, constant([2, 1, 2], "float32"), mode="nearest"),
        "Upsample",
        {"factors": (2, 1, 2)},
    ),
    Form(
        "resize-tf",
        call(
            "Resize",
            11,
            X,
            constant([], "float32"),
            constant([1, 1, 2], "float32"),
            nearest_mode="floor",
            coordinate_transformation_mode="tf_half_pixel_for_nn",
        ),
        "Upsample",
        {"factors": (1, 1, 2)},
    ),
    Form(
        "upsample",
        call("Upsample", 7, X, scales=(1.0, 1.0, 2.0)),
        "Upsample",
        {"factors": (1, 1, 2)},
    ),
    Form(
        "resize-by-one",
        call("Resize", 13, X, None, constant([1, 1, 1], "float32")),
        "Identity",
        {},
    ),
]
