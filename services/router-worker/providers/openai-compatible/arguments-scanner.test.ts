import { describe, expect, it } from 'vitest';
import { ArgumentsScanner } from './arguments-scanner.ts';

function scanned(...pieces: string[]): ArgumentsScanner {
  const scanner = new ArgumentsScanner();
  for (const piece of pieces) scanner.add(piece);
  return scanner;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

describe('the arguments of a call in pieces', () => {
  it.each(['{}', ' {"a" : [ 1, {"b": "}\\"\\\\"} ], "c\\\\": "[{\\u0022" }\n', '{"🙂":"{\\""}'])(
    'are complete where they are JSON, and not before: %s',
    (text) => {
      for (let length = 0; length <= text.length; length += 1) {
        const piece = text.slice(0, length);
        expect([piece, scanned(piece).isComplete]).toEqual([piece, isJson(piece)]);
        expect(scanned(...piece.split('')).isComplete).toBe(isJson(piece));
      }
    },
  );

  it.each(['', ' ', '[]', '"{}"', 'null', '{}1', '}', '{}}{'])('are no complete object: %j', (text) => {
    expect(scanned(text).isComplete).toBe(false);
  });

  it.each<[string, string, boolean]>([
    ['', '{"a"', true],
    ['{"a":', ' {"b"', true],
    ['{"a":[', '{', true],
    ['{"a":[{}, ', '{', true],
    ['{"a":"', '{', true],
    ['{"a"', ':1}', true],
    ['{"a":1}', '', true],
    ['{"a"', '{"b"', false],
    ['{"a":1', '\n{', false],
    ['{"a":1}', '{', false],
  ])('%s and then %s: %s', (before, piece, can) => {
    expect(scanned(before).canContinueWith(piece)).toBe(can);
  });
});
