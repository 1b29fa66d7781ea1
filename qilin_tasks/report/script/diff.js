// What two texts share: the longest common subsequence of their tokens, over at most LIMIT of each between the ends
// that are equal anyway. A token is a word, or one character where a script writes no spaces.
const LIMIT = 2000;
const TOKEN = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|[\p{L}\p{N}\p{M}_]{1,40}|\s+|[^]/gu;
const tokens = (text) => text.match(TOKEN) || [];

// Tokens as numbers, the same for the same: they compare faster than texts.
const numbered = (...lists) => {
  const known = new Map();
  const id = (token) => {
    if (!known.has(token)) known.set(token, known.size);
    return known.get(token);
  };
  return lists.map((list) => Int32Array.from(list, id));
};
// Runs of tokens that both have: [place in a, place in b, how many].
const runs = (tokensA, tokensB) => {
  const [a, b] = numbered(tokensA, tokensB);
  let start = 0, endA = a.length, endB = b.length;
  while (start < endA && start < endB && a[start] === b[start]) start++;
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) { endA--; endB--; }
  const n = Math.min(endA - start, LIMIT), m = Math.min(endB - start, LIMIT), width = m + 1;
  const longest = new Uint16Array((n + 1) * width);
  for (let i = n - 1; i >= 0; i--) {
    const mine = a[start + i];
    for (let j = m - 1, at = i * width + j, right = 0; j >= 0; j--, at--) {
      const below = longest[at + width];
      if (mine === b[start + j]) right = longest[at + width + 1] + 1;
      else if (below > right) right = below;
      longest[at] = right;
    }
  }
  const found = [[0, 0, start]];
  for (let i = 0, j = 0; i < n && j < m;) {
    if (a[start + i] === b[start + j]) {
      const last = found[found.length - 1];
      if (last[0] + last[2] === start + i && last[1] + last[2] === start + j) last[2]++;
      else found.push([start + i, start + j, 1]);
      i++; j++;
    } else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) i++;
    else j++;
  }
  found.push([endA, endB, a.length - endA]);
  return found;
};
// Which tokens of a and of b the other lacks. One character alone in common between differences says nothing.
const lacking = (textA, textB) => {
  const a = tokens(textA), b = tokens(textB);
  const [onlyA, onlyB] = [a, b].map((list) => new Uint8Array(list.length).fill(1));
  for (const [i, j, length] of runs(a, b)) {
    if (a.slice(i, i + length).join("").trim().length < 2 && i > 0 && i + length < a.length) continue;
    onlyA.fill(0, i, i + length);
    onlyB.fill(0, j, j + length);
  }
  return [pieces(a, onlyA), pieces(b, onlyB)];
};
// Which stretches of at least SPAN characters stand in one of the sources word for word.
const SPAN = 8;
const copied = (text, sources) => {
  const grams = new Set();
  for (const source of sources) for (let i = 0; i + SPAN <= source.length; i++) grams.add(source.slice(i, i + SPAN));
  const flags = new Uint8Array(text.length);
  for (let i = 0; i + SPAN <= text.length; i++) if (grams.has(text.slice(i, i + SPAN))) flags.fill(1, i, i + SPAN);
  return pieces(text.split(""), flags);
};
// Tokens with a flag each -> [text, flag] with equal neighbours joined.
const pieces = (list, flags) => {
  const found = [];
  for (let start = 0, i = 1; i <= list.length; i++) {
    if (i < list.length && flags[i] === flags[start]) continue;
    found.push([list.slice(start, i).join(""), flags[start]]);
    start = i;
  }
  return found;
};
