"""The errors of rulesets.

RulesetsError
├── SizeError                 a symbolic size cannot be computed
├── NotModelledError          a proof needs something that is not modelled
├── RuleError                 a rule is wrong; the text names the rule and what is possible
│   ├── TermError             a text is no term, expression or condition; says where
│   ├── RuleFileError         a file of rules is wrong; names file, line and rule
│   └── CorpusError           no sizes fit a published equation
└── OperatorError             an operator is used in a way it does not have
    ├── UnknownOperatorError
    ├── AttributeValueError
    └── ShapeError            it does not apply to tensors of these types and shapes
"""


class RulesetsError(Exception):
    """Any error of this package."""


class SizeError(RulesetsError):
    """A symbolic size cannot be computed."""


class NotModelledError(RulesetsError):
    """A proof needs something that is not modelled."""


class OperatorError(RulesetsError):
    """An operator is used in a way it does not have."""


class UnknownOperatorError(OperatorError):
    """There is no operator of this name."""


class AttributeValueError(OperatorError):
    """An attribute is unknown, missing, or has a value of the wrong kind."""


class ShapeError(OperatorError):
    """An operator does not apply to tensors of these types and shapes."""


class RuleError(RulesetsError):
    """A rule is wrong."""


class TermError(RuleError):
    """A text is no term, expression or condition.

    Attributes:
        reason: What was expected and what was found.
        line: Line of the fault in the text, from 1.
        column: Column of the fault in that line, from 1.
    """

    def __init__(self, reason: str, text: str, offset: int) -> None:
        before = text[:offset]
        self.reason = reason
        self.line = before.count("\n") + 1
        self.column = offset - before.rfind("\n")
        shown = (text.splitlines() or [""])[self.line - 1].strip()
        where = f"at line {self.line}, column {self.column}, of {shown!r}"
        super().__init__(f"{reason}, {where}")


class RuleFileError(RuleError):
    """A file of rules is wrong; the text names file, line and rule."""


class CorpusError(RuleError):
    """No sizes fit a published equation."""


class MissingLibraryError(RulesetsError):
    """A library that is needed here, and only here, is not installed."""
