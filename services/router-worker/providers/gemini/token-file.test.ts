import { mkdtempSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { TokenFile } from './token-file.ts';

function open(token: string | null) {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-token-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'token');
  if (token !== null) writeFileSync(path, token);
  let nowMs = 0;
  const file = new TokenFile(path, { nowMs: () => nowMs });
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { file, path, pass };
}

it('reads the token without white space, and again when the file has changed, a second later', () => {
  const { file, path, pass } = open('first\n');
  expect(file.recent).toEqual([]);
  expect(file.current()).toBe('first');
  writeFileSync(path, 'second-one\n');
  expect(file.current()).toBe('first');
  pass(1_000);
  expect(file.current()).toBe('second-one');
  expect(file.recent).toEqual(['second-one', 'first']);
});

it('retains the last token while the file is away, empty or no token', () => {
  const { file, path, pass } = open('first');
  expect(file.current()).toBe('first');
  for (const change of [() => writeFileSync(path, ''), () => writeFileSync(path, 'two\r\nlines: x'), () => unlinkSync(path)]) {
    change();
    pass(1_000);
    expect(file.current()).toBe('first');
  }
  writeFileSync(path, 'second');
  pass(1_000);
  expect(file.current()).toBe('second');
});

it('refuses a request without any token, and reads a file that comes later at once', () => {
  const { file, path } = open(null);
  expect(() => file.current()).toThrow(expect.objectContaining({ code: 'router.provider_misconfigured' }));
  writeFileSync(path, 'late');
  expect(file.current()).toBe('late');
});
