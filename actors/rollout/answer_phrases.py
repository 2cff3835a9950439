"""The vocabulary around a letter: what announces, denies or takes back an answer.

Only compiled patterns. Those that end in ``$`` are matched against the text *before* a
letter, those that begin with ``^`` against the text after it. ``\\ue000`` and the
following private characters stand for option texts (see ``answer_prose``).
"""

from __future__ import annotations

import re

__all__ = [
    "ANNOUNCED",
    "CONCLUDED",
    "CONDITIONAL",
    "CONFIRMED_AFTER",
    "CORRECTION",
    "DENIED_AFTER",
    "DENIED_BEFORE",
    "DOUBTED",
    "FINAL",
    "HEDGED",
    "LEAD_BEFORE",
    "NAME_NOUNS",
    "ORDINARY_WORDS",
    "POINTED_AT",
    "REFERRED",
    "REFUSAL",
    "RETRACTED",
    "SWITCHED_FROM",
    "TAKEN_BACK",
    "VERBS",
]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NO_LETTER = r"(?![A-Za-z\u00c0-\u024f])"
_START = r"(?<![A-Za-z\u00c0-\u024f])"
_MASK = r"[\ue000-\ue0ff]"
_DECO = r"[\s(\[{<|\"'“”‘’「『【《_·•:>\-–—]*"
_REFERENCE = (
    r"(?:option|choice|alternative|candidate|letter|answer|lettre|letra|lettera|buchstabe|"
    r"opción|opcion|opzione|opção|opcao|alternativa|вариант|буква|选项|選項|選択肢|보기)"
)
_FILL = (
    r"(?:\s*(?:(?:most|very|more) likely|probably|likely|clearly|definitely|certainly|"
    r"obviously|therefore|thus|simply|still|indeed|now|actually|surely|presumably|"
    r"number|labell?ed|the|la|le|el|il|die|der|das|[ao] (?=(?:letra|alternativa|opção))|"
    rf"{_REFERENCE}|选|選|:){_NO_LETTER})*"
)
_COPULA = (
    r"(?:[\"'`)]*\s*(?:[:=|]|=>|-+>|→|—|–|- )|\s*['’]s\b"
    r"|\s+(?:is|was|would be|should be|must be|will be|has to be|seems to be|appears to be|"
    r"remains|becomes|be|ist|lautet|wäre|est|serait|es|sería|è|é|är|er|on|jest|to|это)"
    rf"{_NO_LETTER}"
    r"|\s*(?:应该是|應該是|应为|應為|应是|是|为|為|选择|選擇|选|選|は|が|은|는|이|가))"
)
_NOUN = (
    rf"(?:{_START}(?:answer|ans\.?|response|solution|prediction|selection|verdict|conclusion|"
    r"choice|option|candidate|pick|guess|result|decision|submit|submit_answer|correct|"
    r"antwort|lösung|respuesta|réponse|reponse|risposta|resposta|gabarito|ответ|đáp án|"
    r"cevap|yanıt|odpowiedź|odpověď|antwoord|svaret|svar|jawaban|vastaus|válasz|απάντηση|"
    r"răspuns|răspunsul)|답변|정답|답|答案|正解|解答|回答|答え|答|الإجابة|الجواب|उत्तर|คำตอบ)"
)
_AFTER_NOUN = (
    r"(?:\s+(?:correcta|correcte|corretta|correta|correct|choice|option|letter|key|here|"
    r"(?:to|for|of) (?:this|the) question))?"
)
_BAD_NOUN = (
    r"(?:wrong|incorrect|false|bad|worst|other|rejected|eliminated|alternative|second|"
    r"second best|next best|third|previous|initial|first|earlier|old|original|unlikely|"
    r"impossible|falsche|incorrecta|fausse)"
)

# "The answer is", "Answer:", "答案是": a statement, at the end of the text before a letter.
ANNOUNCED = re.compile(
    rf"(?:(?P<noun>{_NOUN}){_AFTER_NOUN}{_COPULA}{_FILL}"
    rf"|{_START}(?:choose|chose|choosing|picking|picked|pick|selecting|selected|select|"
    rf"go(?:ing)? (?:with|for)|went with|settle on|opt(?:ing)? for|vote for|answer with|answer|"
    rf"stick with|submitting|submit|conclude|leaves|leaving|guess|i'd say|would say|"
    rf"must be|has to be|wähle|nehme|elijo|escojo|choisis|scelgo|escolho|выбираю)"
    rf"(?:\s+(?:that|it's|it is)\b)*{_FILL}"
    rf"|(?:选择|選擇|选|選){_FILL}"
    rf"|{_START}(?:maybe|perhaps|probably|possibly|presumably|(?<!less )(?<!not )likely){_FILL}"
    rf"|{_START}(?:evidence|everything|all(?: of)? this|this|which|that)\s+(?:(?:\w+ly|best)\s+)?"
    rf"(?:points?|leads?) to{_FILL}"
    rf"){_DECO}$",
    re.IGNORECASE,
)
FINAL = re.compile(
    rf"{_START}(?:final|definitive|ultimate|最终|最後の?|最后)\s*(?:\w+\s+)?{_NOUN}?{_AFTER_NOUN}"
    rf"{_COPULA}?{_FILL}{_DECO}$",
    re.IGNORECASE,
)
# "It is": too weak to carry a lower-case letter ("it is a dog").
POINTED_AT = re.compile(
    rf"{_START}(?:(?:it|this|that|which)(?:'s| is| was| must be| should be| would be| will be)"
    rf"|c'est|es ist|es la|è la|é a|это){_FILL}{_DECO}$",
    re.IGNORECASE,
)
CONCLUDED = re.compile(
    rf"{_START}(?:so|thus|therefore|hence|consequently|accordingly|in conclusion|overall|ergo|"
    rf"donc|por lo tanto|also ist)[,:]?{_FILL}{_DECO}$|(?:因此|所以|故|よって|따라서|∴|=>){_DECO}$",
    re.IGNORECASE,
)
# "Option", "choice": names a letter without choosing it.
REFERRED = re.compile(rf"(?:{_START}|(?<=\W)){_REFERENCE}\s*{_DECO}$", re.IGNORECASE)
LEAD_BEFORE = re.compile(rf"^[^\w\ue000-\ue0ff]*(?:{_REFERENCE}\s*{_DECO})?$", re.IGNORECASE)

DENIED_BEFORE = re.compile(
    rf"(?:{_START}(?:not|neither|nor|never|except(?: for)?|other than|rather than|instead of|"
    r"rul(?:e|es|ed|ing) out|eliminat\w+|exclud\w+|reject\w*|discard\w*|dismiss\w*|"
    r"(?:less|least) likely|(?:cannot|can't|couldn't|could not) be|none of|anything but|but not|"
    r"unlike|doubt(?: that)?|"
    r"nicht|keine?|pas|no es|no|non è|non|não é|não|не)|n't|不是|不选|不選|排除|而非|"
    rf"(?:{_START}(?:don't|do not|doesn't|does not|didn't|would not|wouldn't|cannot|can't|not|"
    r"never)\s+(?:think|believe|choose|pick|select|support|match|indicate|suggest|favou?r|say|"
    r"conclude|confirm|go with|points?|leads?|be)\b[^.!?;,\n\ue000-\ue0ff]{0,40}))"
    rf"\s*(?:to be|be|it's|it is|either|both|just){{0,2}}{_FILL}{_DECO}$"
    rf"|{_START}{_BAD_NOUN}\s+{_NOUN}s?{_AFTER_NOUN}{_COPULA}?{_FILL}{_DECO}$"
    rf"|{_START}(?:answer|choice|option|it|that|this) (?:is|was)(?: not|n't){_FILL}{_DECO}$",
    re.IGNORECASE,
)
_ADVERBS = (
    r"(?:(?:also|clearly|definitely|simply|just|both|all|therefore|thus|likely|probably|"
    r"obviously|completely|partly|partially|too|the|an?)\s+)*"
)
DENIED_AFTER = re.compile(
    rf"^[)\"'’\]]*\s*(?:[.):,]?\s*{_MASK})?\s*(?:\([^()\n]{{0,80}}\)\s*)?"
    r"(?:(?:option|choice|answer)\s+)?"
    r"(?:(?:(?:is|are|was|were|seems?|looks?|appears?|would be|can be|could be|should be|must be|"
    rf"has been|have been|being)\s+)?{_ADVERBS}"
    r"(?:not\b(?!\s+(?:wrong|incorrect|only|just|[\"'(]*[A-H]\b))|wrong|incorrect|false|invalid|"
    r"unlikely|impossible|eliminated|ruled out|excluded|rejected|refuted|contradicted|"
    r"unsupported|inaccurate|misleading|distractor|implausible|irrelevant|less likely|out\b)"
    r"|(?:isn't|aren't|wasn't|weren't|doesn't|don't|didn't|cannot|can't|couldn't|won't|"
    r"does not|do not|did not|could not|can not|will not|lacks?|contradicts?|conflicts?|"
    r"fails?|has no|have no|never)\b"
    r"|(?:ist|sind) (?:falsch|nicht)|n'est pas|est (?:fausse?|incorrecte?)|"
    r"(?:es|é) (?:incorret[oa]|incorrect[oa]|fals[oa])|no es|non è|não é|неверн\w+|не\b"
    r"|(?:选项|選項)?\s*(?:是)?\s*(?:错误|錯誤|不正确|不正確|不对|不對|不是|错|錯)"
    r"|は(?:間違|誤り|不正解|違)|[이가은는] (?:아니|틀))"
    r"|^[)\"'\]]*\s*[:\-–—|]\s*(?:no\b|not\b(?!\s+[\"'(]*[A-H]\b)|wrong\b|incorrect\b|false\b|"
    r"eliminated\b|unlikely\b|ruled out\b|[✗✘❌×])"
    r"|^[)\"'\]]*[.)]?\s+(?:[✗✘❌×]|(?:no|wrong|incorrect|false|eliminated)\s*(?:[.,;!\n]|$))",
    re.IGNORECASE,
)
CONFIRMED_AFTER = re.compile(
    rf"^[)\"'’\]]*\s*(?:[.):,]?\s*{_MASK})?\s*(?:\([^()\n]{{0,80}}\)\s*)?"
    r"(?:(?:(?:is|are|was|seems|looks|appears|must be|would be|should be|has to be|will be)\s+"
    r"(?:to be\s+)?(?:(?:clearly|definitely|therefore|thus|indeed|the|probably|obviously|"
    r"certainly|surely|only|single|my|final)\s+)*"
    r"(?:correct|right(?! of| side| next)|true|answer|best|(?:most|more) \w+)"
    r"|(?:fits|matches|suits|describes\s+\w+)\s+(?:it\s+)?(?:best|better)"
    r"|best\s+(?:fits|matches|describes)"
    r"|ist (?:richtig|korrekt)|est (?:la bonne|correcte?|juste)|es (?:la )?correct[ao]|"
    r"é (?:a )?corret[ao]|верн\w+|правильн\w+)\b"
    r"|(?:选项|選項)?(?:是)?(?:正确|正確|对的|對的)|が(?:正しい|正解)|[가이] (?:정답|맞))"
    r"|^[)\"'\]]*\s*[:\-–—|.]?\s*"
    r"(?:(?:(?<=[:|])|(?<=[:|] ))(?:yes|correct|right|true)\b|[✓✔✅])",
    re.IGNORECASE,
)
CONDITIONAL = re.compile(
    r"\b(?:if|whether|suppose|assuming|unless|unsure|(?:not|cannot|can't|don't|n't) "
    r"(?:think|believe|say|conclude|confirm|tell|determine|know|sure|certain|clear))\b"
    r"[^.!?;,\n]{0,60}$",
    re.IGNORECASE,
)
TAKEN_BACK = re.compile(
    r"\b(?:initially|originally|previously|earlier|(?:at|my) first|first (?:thought|guess|chose|"
    r"said|picked|considered)|tempted by|changed? from|switch\w* from|instead of|rather than)\b"
    r"(?:(?!\b(?:but|however|then|now|later|final\w*|after|to)\b)[^.!?;\n]){0,50}$",
    re.IGNORECASE,
)
# "A... no wait, B.": a letter that the next words take back for another one.
RETRACTED = re.compile(
    r"^[^\w\n]{1,5}(?:no|nope|wait|sorry|correction|scratch that|make that)\b"
    r"(?:[^\w\n]{1,4}(?:no|wait|sorry|actually|i mean|it'?s|make that|rather))*"
    r"[^\w\n]{1,4}(?:option )?[\"'(\[]*(?-i:[A-Z])[\"')\]]*\s*(?:[.!,;]|$|\n)",
    re.IGNORECASE,
)
SWITCHED_FROM = re.compile(
    r"\b(?:chang|switch|mov|revis|updat|correct)\w*\b[^.!?\n]{0,40}\bfrom\s+\W*$", re.IGNORECASE
)
CORRECTION = re.compile(
    r"\b(?:wait|actually|correction|sorry|on second thought|reconsider\w*|instead|hmm|however|"
    r"no,|rather)",
    re.IGNORECASE,
)
HEDGED = re.compile(
    rf"\b(?:maybe|perhaps|probably|possibly|likely|guess|lean\w* (?:towards?|to)|think|believe)"
    rf"\b[^.!?\n]{{0,25}}{_DECO}$",
    re.IGNORECASE,
)
# Weaker than "likely": such a letter does not stand against one that is simply stated.
DOUBTED = re.compile(
    rf"\b(?:maybe|perhaps|possibly|might be|could be|may be)\b{_FILL}{_DECO}$", re.IGNORECASE
)
REFUSAL = re.compile(
    r"\b(?:(?:cannot|can ?not|can't|could ?n[o']t|unable to|not able to|"
    r"impossible to|not possible to)"
    r"\s+(?:be\s+)?(?:\w+ly\s+)?(?:answer|determine|tell|say|see|find|identif|view|access|verif|"
    r"confirm|decide|provide|know|choose|pick|select|conclude|watch|process|help)\w*"
    r"|don't know|do not know|insufficient|not enough (?:information|evidence|context|data)|"
    r"no (?:answer|option|choice|information|evidence)\b|none of (?:the|these)|i'm sorry|"
    r"i am sorry|sorry,|as an ai|refuse|decline to|neither of|"
    r"not (?:specified|provided|mentioned in)|undetermined|indeterminate)"
    r"|无法|無法|不知道|不能确定|分かりません|わかりません|알 수 없",
    re.IGNORECASE,
)

# A letter behind one of these is a name: "Plan B", "vitamin C", "scene A".
NAME_NOUNS = _words(
    "vitamin plan team group scene hepatitis type class grade part figure section room camera "
    "person player point level block building gate terminal exhibit table phase appendix chapter "
    "node clip segment frame speaker character shot step zone area lane court hall track episode "
    "season version model series unit line bus route exit platform wing suite apartment cup size "
    "column row cell panel man woman boy girl car actor mr mrs ms dr sir "
    "string major minor key note planet star drive disk bank plane stage pool league division "
    "influenza serie deck dorm tower house region sector state country city company product "
    "robot drone ship boat train"
)
# Capitalised words that may stand before a letter without making it a name.
ORDINARY_WORDS = _words(
    "answer answers option choice candidate letter definitely probably clearly obviously certainly "
    "surely likely maybe perhaps possibly so thus hence therefore then it its just only and or not "
    "either neither both is was be say pick choose select chose go guess yes ok okay sure still "
    "with for to from by of because since but if when although though while whereas the final "
    "correct right best most more between eliminate only mostly presumably apparently honestly "
    "overall conclusion submit take taking picking selecting choosing going i id we my your our "
    "antwort respuesta opción opcion réponse reponse risposta resposta ответ svar cevap la le el "
    "il der die das ist es est è é o u ou oder und et y e wrong incorrect no nor"
)
# Words that may follow the letter A; any other makes it the article.
VERBS = _words(
    "is was are were be has had have does did do can could would will should may might must seems "
    "seemed looks looked appears appeared fits matches shows describes best because since as but "
    "and or although though while if when given due based not isn't wasn't doesn't cannot can't "
    "lacks contradicts says states mentions aligns suits remains makes gets comes over rather "
    "instead then so therefore thus which that this these those the it he she they there we you "
    "i in with from by for on to at wrong incorrect correct right only also better too "
    "nor versus vs ist est es oder und ou et o y e или и"
)
