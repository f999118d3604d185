import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readDocumentFile } from './read-document-file.ts';

describe('readDocumentFile', () => {
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'switchyard-file-'));
  });

  afterAll(async () => {
    await rm(folder, { recursive: true, force: true });
  });

  async function problemsOf(content: string | Buffer): Promise<string[]> {
    return (await read(content)).problems;
  }

  async function read(content: string | Buffer, name = 'document.yaml') {
    const path = join(folder, name);
    await writeFile(path, content);
    return readDocumentFile(path);
  }

  it('reports a missing file', async () => {
    expect(await readDocumentFile(join(folder, 'missing.yaml'))).toEqual({ value: null, problems: ['the file does not exist'] });
  });

  it('refuses a folder', async () => {
    expect((await readDocumentFile(folder)).problems).toEqual(['this is not a regular file']);
  });

  it('refuses a device, whose content may have no end', async () => {
    expect((await readDocumentFile('/dev/zero')).problems).toEqual(['this is not a regular file']);
  });

  it('refuses a file that is too large without reading it', async () => {
    expect(await problemsOf(Buffer.alloc(1_048_577, 'a'))).toEqual(['the file is larger than 1 MiB']);
  });

  it('refuses bytes that are not UTF-8', async () => {
    expect(await problemsOf(Buffer.from([0x61, 0x3a, 0x20, 0xff]))).toEqual(['the file is not UTF-8 text']);
  });

  it('names the line of a mistake in YAML', async () => {
    expect(await problemsOf('id: a\nversion: 1\n\tname: b\n')).toContainEqual(expect.stringMatching(/^line 3, column \d+: /));
  });

  it('names the line of a mistake in JSON', async () => {
    expect(await problemsOf('{\n  "id": "a",\n  "version": 1\n')).toContainEqual(expect.stringMatching(/^line \d+, column \d+: /));
  });

  it('refuses a key that stands twice, in YAML as in JSON', async () => {
    expect(await problemsOf('id: a\nid: b\n')).toEqual(['line 2, column 1: this key is repeated']);
    expect(await problemsOf('{"id": "a",\n "id": "b"}')).toEqual(['line 2, column 2: this key is repeated']);
  });

  it('finds keys that stand twice in mappings of every kind, however deep, in the order of the file', async () => {
    const text = ['a:', '  - {x: 1, "x": 2}', '  - b: &b', '      c: 1', "      'c': 2", '    ? d', '    : 1', '    d: 2', 'e: *b', 'a: 3'].join('\n');
    expect(await problemsOf(text)).toEqual([
      'line 2, column 12: this key is repeated',
      'line 5, column 7: this key is repeated',
      'line 8, column 5: this key is repeated',
      'line 10, column 1: this key is repeated',
    ]);
    expect(await problemsOf('a: {b: 1}\nc: {b: 1}\n"1": x\n"01": y\n')).toEqual([]);
  });

  it('names the first five mistakes and counts the others', async () => {
    const problems = await problemsOf(`a: 1\n${'a: 1\n'.repeat(150_000)}`);
    expect(problems).toHaveLength(6);
    expect(problems[4]).toBe('line 6, column 1: this key is repeated');
    expect(problems[5]).toBe('… and 149995 more');
  });

  it('compares no key with all keys before it', async () => {
    const keys = Array.from({ length: 50_000 }, (_, index) => `key${index}: 1`);
    const before = process.cpuUsage();
    expect((await read(keys.join('\n'))).problems).toEqual([]);
    const { user, system } = process.cpuUsage(before);
    // With the parser's `uniqueKeys`: above 25 s on any machine; without: about one.
    expect((user + system) / 1_000).toBeLessThan(10_000);
  });

  it('refuses a second document in one file', async () => {
    expect(await problemsOf('id: a\n---\nid: b\n')).toEqual(['line 2, column 1: a file must contain one document']);
  });

  it('refuses a tag that it does not know', async () => {
    expect(await problemsOf('id: !secret a\n')).toEqual(['line 1, column 5: a tag or an unquoted value is unknown']);
  });

  it('never quotes the text, which may hold a secret', async () => {
    const mistakes = [
      'sk-live-1: [',
      'a: "sk-live-1\\q"',
      'a: *sk-live-1',
      '{"a": "x"} sk-live-1',
      'a: !sk-live-1 b',
      'sk-live-1: 1\nsk-live-1: 2',
      '@sk-live-1',
    ];

    for (const mistake of mistakes) {
      const problems = await problemsOf(mistake);
      expect(problems.length).toBeGreaterThan(0);
      expect(problems.join()).not.toContain('sk-live-1');
    }
  });

  it('refuses aliases that stand for too much', async () => {
    const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]'];
    for (let level = 1; level < 10; level += 1)
      lines.push(
        `a${level}: &a${level} [${Array(10)
          .fill(`*a${level - 1}`)
          .join(', ')}]`,
      );

    expect(await problemsOf(lines.join('\n'))).toEqual(['an alias refers to no anchor before it, or aliases expand to more than 100 values']);
  });

  it('refuses aliases that stand for too many empty values, which the parser does not count', async () => {
    const lines = ['a0: &a0 []'];
    for (let level = 1; level < 12; level += 1)
      lines.push(
        `a${level}: &a${level} [${Array(9)
          .fill(`*a${level - 1}`)
          .join(', ')}]`,
      );
    expect(await problemsOf(lines.join('\n'))).toEqual(['aliases expand to more than 1048576 values']);
  });

  it('refuses more anchors and aliases than a hand-written file has', async () => {
    const lines = Array.from({ length: 501 }, (_, index) => `k${index}: &a${index} x\nl${index}: *a${index}`);
    expect(await problemsOf(lines.join('\n'))).toEqual(['the document has more than 1000 anchors and aliases']);
    expect(await problemsOf(lines.slice(0, 500).join('\n'))).toEqual([]);
  });

  it('refuses a value that contains itself', async () => {
    expect(await problemsOf('a: &a\n  b: *a\n  c: *a\n')).toEqual(['the document is nested deeper than 64 levels']);
  });

  it('refuses a document that is nested too deeply', async () => {
    expect(await problemsOf('['.repeat(70) + ']'.repeat(70))).toEqual(['the document is nested deeper than 64 levels']);
    expect(await problemsOf('['.repeat(20_000))).toContainEqual(expect.stringMatching(/^line 1, column \d+: /));
  });

  it('refuses values that JSON has no form for', async () => {
    for (const value of ['.inf', '-.inf', '.nan']) expect((await problemsOf(`a: ${value}`)).join()).toContain('a: is a value that JSON cannot represent');
    for (const value of ['!!binary aGk=', '!!set {a, b}', '!!timestamp 2026-01-31', '!!omap [a: 1]']) {
      expect(await problemsOf(`a: ${value}`)).toEqual(['line 1, column 4: a tag or an unquoted value is unknown']);
      expect(await problemsOf(`%YAML 1.1\n---\na: ${value}`)).toEqual(['line 3, column 4: a tag or an unquoted value is unknown']);
    }
  });

  it('DESIGN 10: YAML and JSON are read alike, whatever the name of the file', async () => {
    const value = { id: 'a', version: 1, list: [true, null, 1.5, 'b/c'], text: 'line 1\nline 2\n' };

    expect((await read('id: a\nversion: 1\nlist: [true, null, 1.5, b/c]\ntext: |\n  line 1\n  line 2\n', 'a.json')).value).toEqual(value);
    expect((await read(`\ufeff${JSON.stringify(value, null, '\t').replace('b/c', 'b\\/c')}`, 'a.yaml')).value).toEqual(value);
  });

  it('reads dates and words as texts', async () => {
    expect((await read('day: 2026-01-31\nanswer: yes\n')).value).toEqual({ day: '2026-01-31', answer: 'yes' });
  });
});
