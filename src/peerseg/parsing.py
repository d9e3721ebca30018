"""What the command line takes: a few words for each verb, without importing what runs them."""

import argparse
from typing import NoReturn, TypeAlias

from peerseg import __version__
from peerseg.errors import PeersegError

EXAMPLES = {
    "demo": "peerseg demo --out demo",
    "train": "peerseg train folder --data.root photos --out runs/photos --method.count 3 --steps 2000",
    "evaluate": "peerseg evaluate runs/photos --json",
    "predict": "peerseg predict runs/photos new/*.jpg --out answers",
    "compare": "peerseg compare photos --methods supervised,cps,ncps-cutmix --seeds 0,1,2 --out comparison",
    "split": "peerseg split photos --labels 50 --val 0.2 --group-by '^([^_]+)_' --out photos/split",
}


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line that names the nearest known word."""

    def error(self, message: str) -> NoReturn:
        """Report a mistake as every other mistake is reported.

        Args:
            message: What argparse found wrong.
        """
        raise PeersegError(f"{message}; `{self.prog} --help` shows an example")


Verbs: TypeAlias = "argparse._SubParsersAction[Parser]"


def parser() -> Parser:
    """The whole command line, without importing what it runs."""
    top = Parser(prog="peerseg", description="Semantic segmentation from a few masks and many images.")
    top.add_argument("--version", action="version", version=f"peerseg {__version__}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)
    for words in (_demo_words, _train_words, _evaluate_words, _predict_words, _compare_words, _split_words):
        words(verbs)
    return top


def _demo_words(verbs: Verbs) -> None:
    demo = _verb(verbs, "demo", "Train three arms on drawn scenes and report whether the unlabeled images helped.")
    demo.add_argument("--out", default="demo", help="folder for runs, verdict.json and report.html (default: demo)")
    demo.add_argument("--seeds", default="0", help="one or more seeds, such as 0,1,2 (default: 0)")
    demo.add_argument("--steps", type=int, help="steps of each arm (default: the recipe's)")
    demo.add_argument("--protocol", help="product, paper or code (default: product)")
    demo.add_argument("--json", action="store_true", help="print the verdict as JSON")


def _train_words(verbs: Verbs) -> None:
    train = _verb(verbs, "train", "Train on a recipe; any setting can follow as --section.key value.")
    train.add_argument("recipe", nargs="?", help="a recipe by name (demo, folder, voc, cityscapes ...) or a YAML file")
    train.add_argument("--out", help="the run folder (default: runs/RECIPE)")
    train.add_argument("--steps", type=int, help="how many steps")
    train.add_argument("--seed", type=int, help="of all chance")
    train.add_argument("--protocol", help="product, paper or code (default: what the recipe says)")
    train.add_argument(
        "--gpus", type=int, help="with --protocol code: on how many the authors ran (4 or 8; default: 8)"
    )
    train.add_argument("--resume", metavar="RUN", help="go on with a run that was stopped or killed")
    train.add_argument("--print_config", action="store_true", help="print the resolved settings and stop")


def _evaluate_words(verbs: Verbs) -> None:
    evaluate = _verb(verbs, "evaluate", "Score every vote of a run on its val images, at their own size.")
    evaluate.add_argument("run", help="the run folder")
    _answering(evaluate)
    evaluate.add_argument("--json", action="store_true", help="print JSON")


def _predict_words(verbs: Verbs) -> None:
    predict = _verb(verbs, "predict", "Label pictures with a run: palette PNGs, overlays, and maps if asked for.")
    predict.add_argument("run", help="the run folder")
    predict.add_argument("paths", nargs="+", help="image files or folders of them")
    predict.add_argument("--out", required=True, help="folder for the answers")
    predict.add_argument("--vote", help="single, net2, mc, sv or hv (default: the run's)")
    predict.add_argument("--probabilities", action="store_true", help="also write each class's probability as .npz")
    predict.add_argument("--disagreement", action="store_true", help="also write where the networks disagree as PNG")
    _answering(predict)


def _compare_words(verbs: Verbs) -> None:
    compare = _verb(verbs, "compare", "Compare methods on one data set, at equal steps and at equal compute.")
    compare.add_argument("data", help="a recipe by name or file, or a folder with images/ and masks/")
    compare.add_argument("--methods", required=True, help="names with commas; differences are to the first")
    compare.add_argument("--seeds", default="0", help="one or more seeds, such as 0,1,2 (default: 0)")
    compare.add_argument("--steps", type=int, help="steps of each method (default: the recipe's)")
    compare.add_argument("--out", default="comparison", help="folder for everything (default: comparison)")
    compare.add_argument("--json", action="store_true", help="print JSON")
    compare.epilog = f"{compare.epilog}; --section.key value changes a setting of all of them"


def _split_words(verbs: Verbs) -> None:
    split = _verb(verbs, "split", "Divide a folder's labeled images into labeled, unlabeled and val lists.")
    split.add_argument("root", help="the folder with images/ and masks/")
    split.add_argument("--out", help="folder for the lists (default: the folder itself)")
    split.add_argument("--every", type=int, metavar="R", help="label every R-th image, as the published splits do")
    split.add_argument("--labels", type=int, metavar="N", help="label N images drawn at random")
    split.add_argument("--cover", action="store_true", help="with --labels: draw every class first (reads the masks)")
    split.add_argument(
        "--val", type=float, default=0.2, help="share drawn for val, unless val.txt exists (default: 0.2)"
    )
    split.add_argument("--group-by", metavar="REGEX", help="keep together what shares this part of the name")
    split.add_argument("--seed", type=int, default=0, help="of the draw")


def _verb(verbs: Verbs, name: str, purpose: str) -> Parser:
    example = f"example: {EXAMPLES[name]}"
    return verbs.add_parser(name, help=purpose, description=purpose, epilog=example, allow_abbrev=False)


def _answering(verb: Parser) -> None:
    verb.epilog = f"{verb.epilog}; --evaluation.key value changes how images are shown"
    verb.add_argument("--checkpoint", default="best", help="best (chosen on val, the default) or last")
