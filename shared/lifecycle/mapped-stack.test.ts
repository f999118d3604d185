import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { mappedStack } from './mapped-stack.ts';
import { SourcePositions } from './source-positions.ts';

const url = 'file:///app/dist/programs/part.js';
const none = new SourcePositions(() => '{');

function site(text: string, [line, column]: [number, number] = [3, 7]) {
  return { getScriptNameOrSourceURL: () => url, getLineNumber: () => line, getColumnNumber: () => column, toString: () => text };
}

describe('mappedStack', () => {
  it('names the source in place of the built file, and leaves the rest of a line as it is', () => {
    const positions = new SourcePositions(() => JSON.stringify({ sources: ['../../bus/$&.ts'], mappings: ';;AAUA' }));

    expect(mappedStack(new RangeError('too far'), [site(`async Reader.#read (${url}:3:7)`), site(`${url}:3:7`)], positions)).toBe(
      'RangeError: too far\n    at async Reader.#read (/app/bus/$&.ts:11:1)\n    at /app/bus/$&.ts:11:1',
    );
  });

  it.each(['../../', '../..', 'file:///app/'])('puts the source root %s in front of a source', (sourceRoot) => {
    const positions = new SourcePositions(() => JSON.stringify({ sourceRoot, sources: ['bus/a.ts'], mappings: ';;AAUA' }));

    expect(mappedStack(new Error('here'), [site(`${url}:3:7`)], positions)).toBe('Error: here\n    at /app/bus/a.ts:11:1');
  });

  it('keeps lines without a source', () => {
    const inNode = { ...site('new Promise (<anonymous>)'), getScriptNameOrSourceURL: () => null, getLineNumber: () => null };

    expect(mappedStack(new Error('here'), [site(`read (${url}:3:7)`), inNode], none)).toBe(
      `Error: here\n    at read (${url}:3:7)\n    at new Promise (<anonymous>)`,
    );
  });

  it.each(['{}', '{"sections":[]}', '{"sources":["webpack://app/a.ts"],"mappings":";;AAAA"}', '{"sources":["node:fs"],"mappings":";;AAAA"}'])(
    'keeps lines of a file whose map is %s',
    (map) => {
      const text = `read (${url}:3:7)`;

      expect(mappedStack(new Error('here'), [site(text)], new SourcePositions(() => map))).toBe(`Error: here\n    at ${text}`);
    },
  );

  it('begins as a stack of V8 does', () => {
    const nodeError = errorOf(() => readFileSync(new URL('https://localhost/')));
    const unreadable = Object.defineProperty(new Error('here'), 'name', {
      get: () => {
        throw new Error('no');
      },
    });

    expect(mappedStack(nodeError, [], none)).toBe(`TypeError [ERR_INVALID_URL_SCHEME]: ${nodeError.message}`);
    expect(mappedStack(Object.assign(new Error('said'), { name: 'Refused' }), [], none)).toBe('Refused: said');
    expect(mappedStack(new Listed('said'), [], none)).toBe('Error: said');
    expect(mappedStack(Object.create(null), [], none)).toBe('Error');
    expect(mappedStack(unreadable, [], none)).toBe('Error');
  });
});

/** V8 calls no `toString` of a class. */
class Listed extends Error {
  override toString(): string {
    return 'a list';
  }
}

function errorOf(act: () => unknown): Error {
  try {
    act();
  } catch (error) {
    if (error instanceof Error) return error;
  }
  throw new Error('it did not throw');
}
