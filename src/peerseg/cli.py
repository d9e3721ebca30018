"""The command line: one short function a verb. Nothing heavy is imported before a verb runs."""

import argparse
import json
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from peerseg.errors import PeersegError, StoppedError, nearest
from peerseg.parsing import EXAMPLES, parser


def main(words: Sequence[str] | None = None) -> int:
    """Run one verb.

    Args:
        words: The command line; the process's own where None.

    Returns:
        The exit status: 0 done, 2 the user can mend it, 128 + signal stopped after saving.
    """
    given = list(sys.argv[1:] if words is None else words)
    try:
        if given and not given[0].startswith("-") and given[0] not in EXAMPLES:
            raise PeersegError(f"{given[0]!r} is no verb; {nearest(given[0], EXAMPLES)}")
        plain, dotted = _settings_apart(given)
        arguments, unknown = parser().parse_known_args(plain)
        if arguments.verb is None and not unknown:
            parser().print_help()
            return 0
        _refuse_unknown(arguments.verb, unknown + (dotted if arguments.verb not in SETTABLE else []))
        return _run(arguments, dotted)
    except PeersegError as error:
        print(f"peerseg: {error}", file=sys.stderr)
        return 2
    except StoppedError as stopped:
        print(f"peerseg: {stopped}", file=sys.stderr)
        return 128 + stopped.signal
    except KeyboardInterrupt:
        print("peerseg: stopped; there was nothing to save", file=sys.stderr)
        return 128 + signal.SIGINT
    except (MemoryError, RuntimeError) as error:
        if not _is_out_of_memory(error):
            raise
        print(
            "peerseg: memory is full: set loader.batch or loader.crop lower, or loader.parts higher (training); "
            "evaluation.window (large images)",
            file=sys.stderr,
        )
        return 2


def _is_out_of_memory(error: Exception) -> bool:
    # Torch's own error is told by its name, so that nothing imports torch for it; its CPU has none.
    words = ("out of memory", "can't allocate memory", "not enough memory")
    return type(error).__name__ in ("MemoryError", "OutOfMemoryError") or any(word in str(error) for word in words)


def _settings_apart(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Words for the parser, and ``--section.key value`` pairs, which it would mistake for its own."""
    plain: list[str] = []
    dotted: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not (word.startswith("--") and "." in word.partition("=")[0]):
            plain.append(word)
            continue
        dotted.append(word)
        if "=" not in word and rest:
            dotted.append(rest.pop(0))
    return plain, dotted


def _refuse_unknown(verb: str | None, unknown: Sequence[str]) -> None:
    if unknown:
        top = parser()
        subparsers = next(action for action in top._actions if isinstance(action, argparse._SubParsersAction))
        asked = subparsers.choices[verb] if verb else top
        known = [option for action in asked._actions for option in action.option_strings]
        word = unknown[0].partition("=")[0]
        hint = nearest(word, known) if word.startswith("-") else "it takes no more words"
        raise PeersegError(f"{word!r} is unknown to `{asked.prog}`; {hint}")


def _run(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    if arguments.verb in SETTABLE:
        from peerseg.experiment.reading import parse_overrides

        return SETTABLE[arguments.verb](arguments, parse_overrides(rest))
    verbs = {"demo": _demo, "split": _split}
    verbs[arguments.verb](arguments)
    return 0


def _train(arguments: argparse.Namespace, given: Mapping[str, Any]) -> int:
    from peerseg.experiment.settings import FREE, settings_of

    own = {name: getattr(arguments, name) for name in ("steps", "seed") if getattr(arguments, name) is not None}
    overrides = {**own, **given}
    if arguments.resume is not None:
        if arguments.recipe or arguments.protocol or arguments.gpus or arguments.out or arguments.print_config:
            raise PeersegError("--resume takes a run folder alone: its recipe, protocol and folder are its own")
        from peerseg.experiment.running import resume, say
        from peerseg.report import report_run

        run = resume(arguments.resume, overrides)
        moved = {name: value for name, value in overrides.items() if name in FREE}
        say(f"done: {run.path}; report: {report_run(run, moved)}")
        return 0
    if arguments.recipe is None:
        raise PeersegError(f"no recipe was given, expected a name or a file: {EXAMPLES['train']}")
    settings, notes = settings_of(arguments.recipe, overrides, arguments.protocol, arguments.gpus)
    for note in notes:
        print(note, file=sys.stderr)
    if arguments.print_config:
        import yaml

        print(yaml.safe_dump(settings.as_dict(), sort_keys=False), end="")
        return 0
    from peerseg.experiment.running import say, start
    from peerseg.report import report_run
    from peerseg.runs import new_name

    run = start(settings, arguments.out or new_name(Path("runs"), Path(arguments.recipe).stem))
    say(f"done: {run.path}; report: {report_run(run)}")
    where = shlex.quote(str(run.path))
    say(f"next: peerseg evaluate {where}, or peerseg predict {where} IMAGES --out DIR")
    return 0


def _demo(arguments: argparse.Namespace) -> None:
    from peerseg.demo import demo, table

    found = demo(Path(arguments.out), _seeds(arguments.seeds), steps=arguments.steps, protocol=arguments.protocol)
    if arguments.json:
        print(json.dumps(found.as_dict(), indent=2))
        return
    print(table(found.study))
    print(f"\n{found.sentence}\nreport: {Path(arguments.out) / 'report.html'}")


def _compare(arguments: argparse.Namespace, given: Mapping[str, Any]) -> int:
    from peerseg.compare import compare

    out, methods = Path(arguments.out), arguments.methods.split(",")
    found = compare(arguments.data, methods, _seeds(arguments.seeds), out, steps=arguments.steps, overrides=given)
    if arguments.json:
        print(json.dumps(found.as_dict(), indent=2))
        return 0
    print(found.table().text())
    print(f"\nreports: {out / 'equal-steps' / 'report.html'} and {out / 'equal-compute' / 'report.html'}")
    return 0


def _seeds(words: str) -> list[int]:
    try:
        return [int(word) for word in words.split(",")]
    except ValueError as error:
        raise PeersegError(f"--seeds is {words!r}, expected whole numbers such as 0,1,2") from error


def _evaluate(arguments: argparse.Namespace, given: Mapping[str, Any]) -> int:
    from peerseg.answers import evaluate_run

    scores = evaluate_run(arguments.run, arguments.checkpoint, given)
    if arguments.json:
        print(json.dumps(scores.as_dict(), indent=2))
        return 0
    rules = list(scores.matrices)
    print(f"{'class':16}" + "".join(f"{rule:>8}" for rule in rules))
    columns = {rule: scores.iou(rule) for rule in rules}
    for name in scores.names:
        print(f"{name:16}" + "".join(_number(columns[rule][name]) for rule in rules))
    print(f"{'mean':16}" + "".join(_number(scores.miou(rule)) for rule in rules))
    if scores.disagreement is not None:
        print(f"the networks disagree on {scores.disagreement:.1f}% of the pixels of {scores.images} images")
    return 0


def _predict(arguments: argparse.Namespace, given: Mapping[str, Any]) -> int:
    from peerseg.answers import predict_files

    written = predict_files(
        arguments.run,
        [Path(path) for path in arguments.paths],
        Path(arguments.out),
        which=arguments.checkpoint,
        vote=arguments.vote,
        probabilities=arguments.probabilities,
        disagreement=arguments.disagreement,
        overrides=given,
    )
    print(f"wrote the labels of {written} images to {arguments.out}")
    return 0


def _split(arguments: argparse.Namespace) -> None:
    from peerseg.splitting import split_folder

    for line in split_folder(
        Path(arguments.root),
        Path(arguments.out or arguments.root),
        every_rth=arguments.every,
        labels=arguments.labels,
        cover=arguments.cover,
        val=arguments.val,
        group_by=arguments.group_by,
        seed=arguments.seed,
    ):
        print(line)


def _number(value: float | None) -> str:
    return f"{'-':>8}" if value is None else f"{value:8.1f}"


# The verbs that settings can follow, as --section.key value.
SETTABLE = {"train": _train, "evaluate": _evaluate, "predict": _predict, "compare": _compare}
