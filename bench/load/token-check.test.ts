import { describe, expect, it } from 'vitest';
import { streamEnd, streamHead, streamToken } from '../upstream/answers.mjs';
import { TokenCheck } from './token-check.mjs';

const ID = 17;
const TOKENS = 5;

/** The events of a stream with these tokens, in this order, as one text. */
function streamOf(numbers: readonly number[], id = ID): string {
  return numbers.map((number) => eventOf(streamToken(id, number))).join('');
}

/** An event without the size of its chunk. */
function eventOf(chunk: string): string {
  return chunk.slice(chunk.indexOf('\r\n') + 2, -2);
}

function countsOf(text: string, tokens = TOKENS) {
  const check = new TokenCheck({ id: ID, tokens });
  check.push(text);
  return check.counts();
}

const clean = { delivered: TOKENS, lost: 0, doubled: 0, reordered: 0, foreign: 0 };

describe('the check of tokens', () => {
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
    check.push(eventOf(streamEnd(TOKENS, true)));
    expect(check.isDone).toBe(true);
    expect(streamHead()).toContain('text/event-stream');
  });
});
