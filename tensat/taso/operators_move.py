"""TASO's operators that move or reduce elements, with TASO's names and parameters.

What differs is what was wrong there: axes are written to the model as they are, `split`
takes a number of parts too, `transpose` always moves data, and any number of tensors can be
concatenated.
"""

from __future__ import annotations

from collections.abc import Sequence

from rulesets.size import Size, divide, product
from tensat.errors import UsageError
from tensat.taso.adding import Adder, axes_of, axis_of
from tensat.taso.handle import TensorHandle
from tensat.taso.slicing import slice_attributes


class MovingOperators:
    """Concatenation, slices, shapes, and reductions along axes."""

    _adder: Adder

    def concat(self, axis: int, inputs: Sequence[TensorHandle]) -> TensorHandle:
        """All tensors one after the other along an axis."""
        if not inputs:
            raise UsageError("concat needs at least one tensor; found none")
        place = axis_of(axis, self._adder.checked(inputs[0]).nDim)
        return self._adder.apply("Concat", *inputs, axis=place)

    def split(
        self, input: TensorHandle, axis: int, sizes: Sequence[int] | int
    ) -> list[TensorHandle]:
        """Parts along an axis, of these sizes, or so many of one size."""
        place = axis_of(axis, self._adder.checked(input).nDim)
        if isinstance(sizes, int):
            whole = input.dim(place)
            if sizes < 1 or whole % sizes:
                raise UsageError(f"{whole} along axis {axis} is no multiple of {sizes}")
            sizes = [whole // sizes] * sizes
        return self._adder.apply_all("Split", input, axis=place, parts=tuple(sizes))

    def reshape(self, input: TensorHandle, shape: Sequence[int]) -> TensorHandle:
        """The same elements in another shape; one size may be -1, 0 keeps a size."""
        dims = self._adder.checked(input).dims
        target: list[Size] = [
            dims[place] if size == 0 and place < len(dims) else size
            for place, size in enumerate(shape)
        ]
        if target.count(-1) == 1:
            rest = product(tuple(size for size in target if size != -1))
            missing = divide(product(dims), rest) if rest != 0 else None
            if missing is None:
                raise UsageError(f"reshape of {dims} to {tuple(shape)} leaves a remainder")
            target[target.index(-1)] = missing
        return self._adder.apply("Reshape", input, shape=tuple(target))

    def transpose(
        self, input: TensorHandle, perm: Sequence[int], shuffle: bool = False
    ) -> TensorHandle:
        """Axes in another order; data is always moved, whatever `shuffle` says."""
        return self._adder.apply("Transpose", input, perm=tuple(perm))

    def slice(
        self,
        input: TensorHandle,
        start: Sequence[int],
        end: Sequence[int],
        axes: Sequence[int] | None = None,
        steps: Sequence[int] | None = None,
    ) -> TensorHandle:
        """A part, as NumPy slices: x[start:end:step] along each of the axes."""
        dims = self._adder.checked(input).dims
        given = range(len(start)) if axes is None else axes
        places = [axis_of(axis, len(dims)) for axis in given]
        attributes = slice_attributes(dims, start, end, places, steps)
        return self._adder.apply("Slice", input, **attributes)

    def squeeze(self, *, input: TensorHandle, axes: Sequence[int]) -> TensorHandle:
        """Without these axes of size 1."""
        rank = self._adder.checked(input).nDim
        return self._adder.apply("Squeeze", input, axes=axes_of(axes, rank))

    def unsqueeze(self, input: TensorHandle, axes: Sequence[int]) -> TensorHandle:
        """With new axes of size 1 at these places of the result."""
        rank = self._adder.checked(input).nDim + len(axes)
        return self._adder.apply("Unsqueeze", input, axes=axes_of(axes, rank))

    def shape(self, input: TensorHandle) -> TensorHandle:
        """The sizes as an int64 tensor."""
        return self._adder.apply_onnx("Shape", input)

    def size(self, *, input: TensorHandle) -> TensorHandle:
        """The number of elements as an int64 tensor of rank 0."""
        return self._adder.apply_onnx("Size", input)

    # ------------------------------------------------------------------ reductions
    def _reduce(
        self, name: str, input: TensorHandle, axes: Sequence[int], keepdims: bool
    ) -> TensorHandle:
        places = axes_of(axes, self._adder.checked(input).nDim)
        return self._adder.apply(name, input, axes=places, keepdims=int(keepdims))

    def reduce_sum(
        self, *, input: TensorHandle, axes: Sequence[int], keepdims: bool = True
    ) -> TensorHandle:
        """Sum over axes."""
        return self._reduce("ReduceSum", input, axes, keepdims)

    def reduce_mean(
        self, *, input: TensorHandle, axes: Sequence[int], keepdims: bool = True
    ) -> TensorHandle:
        """Mean over axes."""
        return self._reduce("ReduceMean", input, axes, keepdims)

    def reduce_max(
        self, *, input: TensorHandle, axes: Sequence[int], keepdims: bool = True
    ) -> TensorHandle:
        """Maximum over axes."""
        return self._reduce("ReduceMax", input, axes, keepdims)

    def reduce_min(
        self, *, input: TensorHandle, axes: Sequence[int], keepdims: bool = True
    ) -> TensorHandle:
        """Minimum over axes."""
        return self._reduce("ReduceMin", input, axes, keepdims)

    def reduce_prod(
        self, *, input: TensorHandle, axes: Sequence[int], keepdims: bool = True
    ) -> TensorHandle:
        """Product over axes."""
        return self._reduce("ReduceProd", input, axes, keepdims)

    def reduce_argmax(
        self, *, input: TensorHandle, axes: Sequence[int], keepdims: bool = True
    ) -> TensorHandle:
        """Index of the maximum along one axis."""
        return self._index_of("ArgMax", input, axes, keepdims)

    def reduce_argmin(
        self, *, input: TensorHandle, axes: Sequence[int], keepdims: bool = True
    ) -> TensorHandle:
        """Index of the minimum along one axis."""
        return self._index_of("ArgMin", input, axes, keepdims)

    def _index_of(
        self, name: str, input: TensorHandle, axes: Sequence[int], keepdims: bool
    ) -> TensorHandle:
        if len(axes) != 1:
            raise UsageError(f"{name} goes along one axis, not along {tuple(axes)}")
        place = axis_of(axes[0], self._adder.checked(input).nDim)
        return self._adder.apply_onnx(name, input, axis=place, keepdims=int(keepdims))
