"""The stop words of Lucene's analyzers, as Anserini uses them."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CJK_STOP_WORDS = _words(
    "a and are as at be but by for if in into is it no not of on or s such t that the their then there these"
    " they this to was will with www"
)
"""Lucene's CJKAnalyzer: its stop word file without the empty entry."""

ENGLISH_STOP_WORDS = _words(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these"
    " they this to was will with"
)
"""Lucene's EnglishAnalyzer: 33 words."""

THAI_STOP_WORDS = _words(
    "ไว้ ไม่ ให้ ใน โดย ได้ แห่ง แล้ว และ แต่ เอง เลย เรา เมื่อ เพื่อ เพราะ เป็นการ เป็น เนื่องจาก เดียวกัน เดียว เช่น เฉพาะ เคย เขา"
    " อีก อาจ อะไร อย่าง อยู่ อยาก หาก หลาย หลังจาก หลัง หรือ หนึ่ง ส่วน สุด สําหรับ สำหรับ ว่า ระหว่าง รวม ยัง มี มาก พร้อม บาง น่า นี้ นั้น"
    " นอกจาก ทุก ที่สุด ที่ ทําให้ ทำให้ ทั้งนี้ ทั้ง ถ้า ถูก ถึง ต้อง ต่างๆ ต่าง ต่อ ตาม ตั้งแต่ ด้วย ดัง ซึ่ง จึง จาก จะ คือ ความ ครั้ง คง ของ"
    " ขณะ ก่อน ก็ การ กับ กัน กว่า"
)
"""Lucene's ThaiAnalyzer (after Sukhum et al. 2010, as Lucene curates it)."""
