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

  it('says that a file is not there', async () => {
    expect(await readDocumentFile(join(folder, 'missing.yaml'))).toEqual({ value: null, problems: ['the file does not exist'] });
  });

  it('refuses a folder', async () => {
    expect((await readDocumentFile(folder)).problems).toEqual(['this is not a file']);
  });

  it('refuses a device, whose content may have no end', async () => {
    expect((await readDocumentFile('/dev/zero')).problems).toEqual(['this is not a file']);
  });

  it('refuses a file that is too large without reading it', async () => {
    expect(await problemsOf(Buffer.alloc(1_048_577, 'a'))).toEqual(['the file is larger than 1 MiB']);
  });

  it('refuses bytes that are no UTF-8', async () => {
    expect(await problemsOf(Buffer.from([0x61, 0x3a, 0x20, 0xff]))).toEqual(['the file is not UTF-8 text']);
  });

  it('names the line of a mistake in YAML', async () => {
    expect(await problemsOf('id: a\nversion: 1\n\tname: b\n')).toContainEqual(expect.stringMatching(/^line 3, column \d+: /));
  });

  it('names the line of a mistake in JSON', async () => {
    expect(await problemsOf('{\n  "id": "a",\n  "version": 1\n')).toContainEqual(expect.stringMatching(/^line \d+, column \d+: /));
  });

  it('refuses a key that stands twice, in YAML as in JSON', async () => {
    expect(await problemsOf('id: a\nid: b\n')).toEqual(['line 2, column 1: this key stands here twice']);
    expect(await problemsOf('{"id": "a",\n "id": "b"}')).toEqual(['line 2, column 2: this key stands here twice']);
  });

  it('refuses a second document in one file', async () => {
    expect(await problemsOf('id: a\n---\nid: b\n')).toEqual(['line 2, column 1: a file must hold one document']);
  });

  it('refuses a tag that it does not know', async () => {
    expect(await problemsOf('id: !secret a\n')).toEqual(['line 1, column 5: a tag or an unquoted value is not known']);
  });

  it('never quotes the text, in which a secret may stand', async () => {
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

    expect(await problemsOf(lines.join('\n'))).toEqual(['an alias names no anchor before it, or aliases stand for more than 100 values']);
  });

  it('refuses a value that contains itself', async () => {
    expect(await problemsOf('a: &a\n  b: *a\n  c: *a\n')).toEqual(['the document is nested deeper than 64 levels']);
  });

  it('refuses a document that is nested too deeply', async () => {
    expect(await problemsOf('['.repeat(70) + ']'.repeat(70))).toEqual(['the document is nested deeper than 64 levels']);
    expect(await problemsOf('['.repeat(20_000))).toContainEqual(expect.stringMatching(/^line 1, column \d+: /));
  });

  it('refuses values that JSON has no form for', async () => {
    for (const value of ['.inf', '-.inf', '.nan', '!!binary aGk=', '!!set {a, b}', '!!timestamp 2026-01-31']) {
      expect((await problemsOf(`a: ${value}`)).join()).toContain('that JSON has no form for');
    }
  });

  it('DESIGN 10: YAML and JSON are read alike, whatever the file is called', async () => {
    const value = { id: 'a', version: 1, list: [true, null, 1.5, 'b/c'], text: 'line 1\nline 2\n' };

    expect((await read('id: a\nversion: 1\nlist: [true, null, 1.5, b/c]\ntext: |\n  line 1\n  line 2\n', 'a.json')).value).toEqual(value);
    expect((await read(`\ufeff${JSON.stringify(value, null, '\t').replace('b/c', 'b\\/c')}`, 'a.yaml')).value).toEqual(value);
  });

  it('reads days and words as the texts that they are', async () => {
    expect((await read('day: 2026-01-31\nanswer: yes\n')).value).toEqual({ day: '2026-01-31', answer: 'yes' });
  });
});
