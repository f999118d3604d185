import { describe, expect, it } from 'vitest';
import { traffics } from '../shape.mjs';
import { answersIn } from '../upstream/answers.mjs';
import { TokenCheck } from './token-check.mjs';

const ID = 17;
const TOKENS = 5;

/** The bytes of a body that was sent in chunks. */
function bodyOf(chunked: string): string {
  let body = '';
  for (let at = 0; at < chunked.length; ) {
    const lineEnd = chunked.indexOf('\r\n', at);
    const size = Number.parseInt(chunked.slice(at, lineEnd), 16);
    body += chunked.slice(lineEnd + 2, lineEnd + 2 + size);
    at = lineEnd + 2 + size + 2;
  }
  return body;
}

function countsOf(text: string, tokens = TOKENS) {
  const check = new TokenCheck({ id: ID, tokens });
  check.push(text);
  return check.counts();
}

const clean = { delivered: TOKENS, lost: 0, doubled: 0, reordered: 0, foreign: 0 };

describe.each(traffics)('the check of tokens in %s traffic', (traffic) => {
  const answers = answersIn[traffic];
  /** The events of a stream with these tokens, in this order, as one text. */
  const streamOf = (numbers: readonly number[], id = ID) => numbers.map((number) => bodyOf(answers.token(id, number, { usage: true }))).join('');

  it('finds nothing wrong with a complete stream', () => {
    expect(countsOf(streamOf([0, 1, 2, 3, 4]))).toEqual(clean);
  });

  it('detects a token that was lost in the middle, and one at the end', () => {
    expect(countsOf(streamOf([0, 1, 3, 4]))).toEqual({ ...clean, delivered: 4, lost: 1 });
    expect(countsOf(streamOf([0, 1, 2, 3]))).toEqual({ ...clean, delivered: 4, lost: 1 });
  });

  it('detects a repeated token, at once and later', () => {
    expect(countsOf(streamOf([0, 1, 1, 2, 3, 4]))).toEqual({ ...clean, doubled: 1 });
    expect(countsOf(streamOf([0, 1, 2, 3, 4, 1]))).toEqual({ ...clean, doubled: 1 });
  });

  it('detects two tokens in the wrong order', () => {
    expect(countsOf(streamOf([0, 2, 1, 3, 4]))).toEqual({ ...clean, reordered: 1 });
  });

  it('does not count a doubled token as a lost one that came late', () => {
    expect(countsOf(streamOf([0, 1, 1, 3, 4]))).toEqual({ delivered: 4, lost: 1, doubled: 1, reordered: 0, foreign: 0 });
  });

  it('detects a token of another stream, and one that was never sent', () => {
    expect(countsOf(streamOf([0, 1, 2, 3, 4]) + streamOf([2], ID + 1))).toEqual({ ...clean, foreign: 1 });
    expect(countsOf(streamOf([0, 1, 2, 3, 4, 5]))).toEqual({ ...clean, foreign: 1 });
  });

  it('counts everything of an empty stream as lost', () => {
    expect(countsOf('')).toEqual({ ...clean, delivered: 0, lost: TOKENS });
  });

  it('parses a stream byte by byte, and tokens that share an event', () => {
    const bytewise = new TokenCheck({ id: ID, tokens: TOKENS });
    for (const character of streamOf([0, 1, 2, 3, 4])) bytewise.push(character);

    expect(bytewise.counts()).toEqual(clean);
    expect(countsOf(`data: {"choices":[{"delta":{"content":"${ID}.0 ${ID}.1 ${ID}.2 "}}]}\n\n${streamOf([3, 4])}`)).toEqual(clean);
  });

  it('distinguishes a stream with its end mark from one that only ended', () => {
    const check = new TokenCheck({ id: ID, tokens: TOKENS });
    check.push(streamOf([0, 1, 2, 3, 4]));

    expect(check.isDone).toBe(false);
    check.push(bodyOf(answers.end(TOKENS, { usage: true })));
    expect(check.isDone).toBe(true);
    expect(answers.head()).toContain('text/event-stream');
  });
});
