"""The languages of reading sets: the script each is written in, and its abbreviations that end with a full stop."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import regex


@dataclass(frozen=True)
class Language:
    """`scripts` as Unicode names them; `abbreviations` in lower case, without their last full stop.

    `ordinals`: a number of one or two digits with a full stop may be an ordinal (`am 3. Oktober`); `question_mark`: one
    that Unicode does not count among the terminators.
    """

    scripts: tuple[str, ...]
    abbreviations: frozenset[str] = frozenset()
    ordinals: bool = False
    question_mark: str = ""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LATIN, _CYRILLIC, _ARABIC, _DEVANAGARI = ("Latin",), ("Cyrillic",), ("Arabic",), ("Devanagari",)
_HAN = ("Han", "Hiragana", "Katakana", "Bopomofo")

#: By ISO 639-1 code. English, Chinese and Thai have rules of their own in `sentences`.
LANGUAGES: dict[str, Language] = {
    "ar": Language(_ARABIC, _words("د أ م ه هـ ق.م ب.م ص ج ت ط تق أ.د ق مـ")),
    "bg": Language(_CYRILLIC, _words("г гр проф д-р св т.е т.нар напр стр вж ул бул им")),
    "bn": Language(("Bengali",), _words("ড ডা মো মি")),
    "cs": Language(
        _LATIN,
        _words(
            """
            např tzv tj tzn atd apod mj resp str č čís sv ing mgr dr prof doc r st
            """
        ),
        ordinals=True,
    ),
    "da": Language(_LATIN, _words("f.eks bl.a dvs ca nr osv m.m pga ift jf hhv kl dr prof skt"), ordinals=True),
    "de": Language(
        _LATIN,
        _words(
            """
            abb abs abschn abt art bd bde betr bspw bzw ca chr co d.h dipl dr dt e.v ebd ehem eigtl einschl
            engl etc evtl e.k f ff fr franz gegr geb gest ggf h.c hrsg hl i.d.r i.v inkl ing insb jh jhd
            jhdt jr kap lat m.a max mind mio mrd mr mrs n.chr nr o.ä o.g prof russ s sog sr st std str tel
            u.a u.ä u.u ugs usw v v.a v.chr vgl vs z.b z.t z zb zit zzgl sept nov jan feb dez aug okt apr
            """
        ),
        ordinals=True,
    ),
    "el": Language(
        ("Greek",),
        _words("π.χ δηλ κ.λπ κλπ κ.ά κ.α π.μ μ.μ μ.χ αι αρ βλ δρ καθ κ κα κος λ.χ σ σελ χλμ τ.μ τηλ τ.χ αγ στρ ο.π"),
        question_mark=";",
    ),
    "en": Language(_LATIN),
    "es": Language(
        _LATIN,
        _words(
            """
            a.c a.m aprox art arts av avda cap cía d d.c da dr dra dres ee ee.uu ej etc excmo fig gob gral
            ing jr lic mons máx mín n.º no nro núm p p.ej p.m pág págs prof profa pte rev s s.a sr sra sres
            srta sta sto ss.mm tel ud uds vd vol vs st hab ste pob
            """
        ),
    ),
    "fa": Language(_ARABIC, _words("د م ه ق.م ص")),
    "fi": Language(_LATIN, _words("esim mm ns ts ks n noin prof tri fil jne yms ym s v"), ordinals=True),
    "fr": Language(
        _LATIN, _words("m mm mme mlle dr pr st ste av j.-c apr env etc p.ex fig art vol no éd cf c.-à-d hab ed boul")
    ),
    "he": Language(("Hebrew",), _words("ד פרופ גב מר")),
    "hi": Language(
        _DEVANAGARI,
        _words(
            """
            डॉ डा श्री प्रो पं ई ई.पू ई.पू० पू सं कि.मी मी लि कं रु नं स्व श्रीमती कु ले कर्नल सर मि उ द अ ब से.मी मि.मी
            एस आर जे के वी पी
            """
        ),
    ),
    "hu": Language(_LATIN, _words("pl kb stb ún ill dr prof szt i.e i.sz u.n vö ker"), ordinals=True),
    "id": Language(_LATIN, _words("dr prof ir drs jl no hlm dll dsb dkk tn ny st")),
    "it": Language(_LATIN, _words("sig sig.ra dott prof ing avv on a.c d.c ecc es art pag fig vol ca s st dr geom")),
    "ja": Language(_HAN),
    "ko": Language(("Hangul", "Han")),
    "mr": Language(_DEVANAGARI, _words("डॉ प्रा श्री इ.स इ सं कि.मी पू")),
    "ne": Language(_DEVANAGARI, _words("डा श्री प्रा वि.सं ई कि.मी")),
    "nl": Language(
        _LATIN,
        _words(
            """
            bijv bv dhr mevr dr prof ir drs mr nr blz ca enz o.a d.w.z v.chr n.chr m.b.t t.o.v jr st
            """
        ),
    ),
    "no": Language(_LATIN, _words("f.eks bl.a dvs ca nr osv m.m pga jf hhv kl dr prof st"), ordinals=True),
    "pl": Language(
        _LATIN,
        _words(
            """
            np tzw tj itd itp m.in prof dr mgr inż św ul al nr str zob por ok p.n.e n.e im ks tys w r
            """
        ),
    ),
    "pt": Language(
        _LATIN,
        _words("sr sra srta dr dra prof profa eng av art cap fig nº pág págs vol etc ex aprox a.c d.c r st sto sta"),
    ),
    "ro": Language(
        _LATIN,
        _words(
            """
            acad al art aprox av bd bl cap cca cf cl col conf corp d.hr î.hr î.e.n e.n dl dna dr dv etc ex
            fig gen ing jud jr lect loc lt min mr nr op p pag par pct pr prof pt reg sc sec sf st str s.n
            ș.a ş.a șos tel ten vol vs ian sept urm nov febr apr aug oct alin dec
            """
        ),
    ),
    "ru": Language(
        _CYRILLIC,
        _words(
            """
            акад англ вв в г гг гл гос греч д до доп др ед им ин исп ит кв км кн кр лат лит м млн млрд мн
            мин н.э напр нач нем о обл ок пер пл поч пр проф р рис род руб с св см сокр ст стр т т.д т.е т.к
            т.н т.п т.ч тел трлн тыс ул фр франц ч чел экз яп янв окт дж февр авг нояб апр сент дек
            """
        ),
    ),
    "sv": Language(_LATIN, _words("t.ex bl.a dvs d.v.s ca nr osv m.m pga jfr resp kl dr prof s.k f.kr e.kr st")),
    "ta": Language(("Tamil",)),
    "te": Language(("Telugu",)),
    "th": Language(("Thai",)),
    "tr": Language(
        _LATIN,
        _words(
            """
            alb apt av bkz bl bşk çev cad dr doç fak gen hz ing jr kur lat m.ö m.s max md milat min mah nö no nr ö.ö
            ord örn prof s sf sn sok st şb t.c tel tğm uzm vb vd vs yrd yy yzb yay
            """
        ),
        ordinals=True,
    ),
    "uk": Language(
        _CYRILLIC,
        _words(
            """
            р рр ст м вул ім проф акад св т т.д т.п т.зв напр див стор с млн млрд тис н.е о ін
            """
        ),
    ),
    "ur": Language(_ARABIC, _words("ڈاکٹر م ص ء")),
    "vi": Language(
        _LATIN,
        _words(
            """
            tp ts ths gs pgs bs ks st tr tcn scn v.v vd mr mrs dr th q p tx tt nxb t/p kts cn
            """
        ),
    ),
    "zh": Language(_HAN),
}

#: Languages that write no blanks between words.
UNSPACED = frozenset(("ja", "th", "zh"))

_LETTER = regex.compile(r"\p{L}")
# Beyond this share of letters of other scripts, the language is hardly the one that was named.
_MOST_OTHER = 0.5
_LOOKED_AT = 200


@lru_cache(maxsize=64)
def _script(name: str) -> Any:
    return regex.compile(rf"\p{{Script={name}}}")


def script_complaint(texts: Iterable[str], language: str) -> str | None:
    """What is to be said where most letters of the texts (the first 200) are of another script than the language's."""
    sample = "".join(text for _, text in zip(range(_LOOKED_AT), texts, strict=False))
    letters = "".join(_LETTER.findall(sample))
    fitting = sum(len(_script(name).findall(letters)) for name in LANGUAGES[language].scripts)
    if not letters or fitting >= (1 - _MOST_OTHER) * len(letters):
        return None
    likely = sorted(
        code
        for code, known in LANGUAGES.items()
        if sum(len(_script(name).findall(letters)) for name in known.scripts) >= (1 - _MOST_OTHER) * len(letters)
    )
    return (
        f"{100 * fitting / len(letters):.0f} % of the letters are of the script of language {language!r}, so sentences "
        f"are cut by the wrong rules; languages of the text's script: {', '.join(likely) or 'none that is known'}"
    )
