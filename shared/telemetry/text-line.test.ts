import { describe, expect, it } from 'vitest';
import { createLog } from './log.ts';
import { textLine } from './text-line.ts';

const entry = { level: 'warn', time: '2026-01-02T03:04:05.678Z', service: 'router-worker', pid: 7, msg: 'an attempt failed' };
const textOf = (fields: Record<string, unknown>) => textLine(`${JSON.stringify({ ...entry, ...fields })}\n`);

describe('a line of the log as text', () => {
  it('has the time, the level, the service, the message and the fields', () => {
    expect(textOf({ model: 'a/b', status: 500, cost_usd: null, why: 'it is "down"', list: [1, 'x'] })).toBe(
      '03:04:05.678 WARN  router-worker  an attempt failed  model=a/b status=500 cost_usd=null why="it is \\"down\\"" list=[1,"x"]\n',
    );
  });

  it('has an error on separate lines, with its causes and the beginning of its stack', () => {
    const stack = ['TypeError: broken', ...Array.from({ length: 40 }, (_, at) => `    at f${at} (file.ts:1:1)`)].join('\n');
    const err = { name: 'SwitchyardError', code: 'bus.full', message: 'no room', details: { kind: 'x' }, stack, causes: [{ name: 'Error', message: 'deep' }] };
    const lines = textOf({ err }).trimEnd().split('\n');
    expect(lines[1]).toBe('    SwitchyardError bus.full: no room  kind=x');
    expect(lines[2]).toBe('      at f0 (file.ts:1:1)');
    expect(lines.at(-1)).toBe('    caused by Error: deep');
    expect(lines).toHaveLength(1 + 1 + 12 + 1);
  });

  it.each([
    ['a new line', 'a\nb'],
    ['a carriage return', 'a\rb'],
    ['an escape of the terminal', '\u001b[2Jb'],
    ['one of eight bits', '\u009b2Jb'],
    ['a turn of direction', 'a\u202eb'],
    ['a line separator', 'a\u2028b'],
    ['half a character', 'a\ud800b'],
  ])('lets no value, name, message or error write %s', (_, odd) => {
    for (const fields of [
      { field: odd },
      { [odd]: 1 },
      { msg: odd },
      { service: odd },
      { field: { [odd]: [odd] } },
      { err: odd },
      { err: { name: odd, message: odd, details: { odd }, stack: `at ${odd}` } },
    ]) {
      const text = textOf(fields);
      expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Cs}]/u);
      expect(text.split('\n').filter((line) => line.startsWith('b'))).toEqual([]);
    }
  });

  it('is truncated where a value is long, and shows what is not a log line unchanged', () => {
    expect(textOf({ value: 'x'.repeat(10_000) }).length).toBeLessThan(700);
    expect(textLine('not\u001b JSON\n')).toBe('not\\u001b JSON\n');
  });
});

describe('the form of a log', () => {
  const write = (format: string | null) => {
    const lines: string[] = [];
    const log = createLog({ level: 'info', service: 'test', format, output: { write: (line) => void lines.push(line) } });
    log.warn({ api_key: 'hush', url: 'https://u:hush@host/' }, 'at https://u:hush@host');
    return lines.join('');
  };

  it('is text or JSON, as is asked, with secrets masked in both', () => {
    expect(JSON.parse(write('json'))).toMatchObject({ level: 'warn', api_key: '[redacted]' });
    expect(write('TEXT')).toMatch(/^\d\d:\d\d:\d\d\.\d{3} WARN {2}test {2}at https:\/\/\[redacted\]@host {2}api_key="\[redacted\]" url=/);
    expect(write('text')).not.toContain('hush');
  });

  it('is JSON by default without a terminal', () => {
    expect(JSON.parse(write(null))).toMatchObject({ level: 'warn' });
  });

  it('is no other', () => {
    expect(() => write('xml')).toThrow(expect.objectContaining({ code: 'config.invalid', message: expect.stringContaining("'xml'") }));
  });
});
