import { expect, it } from 'vitest';
import { createLog, logAbout, silentLog } from './log.ts';

function recording(level: string | null) {
  const lines: Record<string, unknown>[] = [];
  const log = createLog({ level, service: 'test', output: { write: (line) => lines.push(JSON.parse(line)) } });
  return { log, lines };
}

it('refuses a level that does not exist', () => {
  expect(() => createLog({ level: 'LOUD', service: 'test' })).toThrow(
    expect.objectContaining({ code: 'config.invalid', message: expect.stringContaining("'LOUD'") }),
  );
  expect(() => createLog({ level: 'toString', service: 'test' })).toThrow(expect.objectContaining({ code: 'config.invalid' }));
});

it('logs at info where no level is set, until one is', () => {
  const { log, lines } = recording(null);
  log.debug({}, 'unseen');
  log.info({}, 'seen');
  log.setLevel('WARNING');
  log.info({}, 'unseen');
  log.setLevel('debug');
  log.debug({}, 'seen too');

  expect(lines.map(({ msg }) => msg)).toEqual(['seen', 'seen too']);
  expect(() => log.setLevel('LOUD')).toThrow(expect.objectContaining({ code: 'config.invalid' }));
});

it('never writes a secret, whether in a field, in the message or in an error', () => {
  const { log, lines } = recording('INFO');

  log.error({ api_key: 'hush', nested: { headers: { Authorization: 'hush' } }, err: new Error('GET https://u:hush@host failed') }, 'at https://u:hush@host');

  expect(JSON.stringify(lines)).not.toContain('hush');
  expect(lines).toMatchObject([{ api_key: '[redacted]', nested: { headers: { Authorization: '[redacted]' } }, msg: 'at https://[redacted]@host' }]);
});

it('writes an error with its codes and its whole chain of causes', () => {
  const { log, lines } = recording('INFO');
  const cause = Object.assign(new Error('broken pipe'), { code: 'EPIPE' });

  log.warn({ err: new Error('could not publish', { cause }) }, 'retrying');

  const stack = expect.stringContaining('log.test.ts');
  const causes = [{ name: 'Error', code: 'EPIPE', message: 'broken pipe', stack }];
  expect(lines).toMatchObject([{ level: 'warn', msg: 'retrying' }]);
  expect(lines[0]?.err).toEqual({ name: 'Error', message: 'could not publish', stack, causes });
});

const order = ['trace', 'debug', 'info', 'warn', 'error'] as const;
it.each([
  ['TRACE', 0],
  ['DEBUG', 1],
  ['INFO', 2],
  ['WARNING', 3],
  ['ERROR', 4],
  ['CRITICAL', 5],
  ['trace', 0],
  ['debug', 1],
  ['info', 2],
  ['warn', 3],
  ['error', 4],
  ['fatal', 5],
  ['silent', 5],
])('writes from the level %s on and nothing below it', (level, from) => {
  const { log, lines } = recording(level);

  for (const name of order) log[name]({}, 'a line');

  expect(lines.map((line) => line.level)).toEqual(order.slice(from));
});

it('writes one JSON object a line, with time, service and process', () => {
  const { log, lines } = recording('info');

  log.info({ session_id: 'ses_1', count: 2 }, 'two at 100% %s\nand more');

  expect(lines).toEqual([
    {
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      service: 'test',
      pid: process.pid,
      session_id: 'ses_1',
      count: 2,
      msg: 'two at 100% %s\nand more',
    },
  ]);
});

it('has its context fields in every line', () => {
  const { log, lines } = recording('info');
  logAbout(log, () => ({ call_id: 'gen-1', trace_id: 'abc' })).warn({ attempt: 2 }, 'again');
  expect(lines).toMatchObject([{ level: 'warn', call_id: 'gen-1', trace_id: 'abc', attempt: 2, msg: 'again' }]);
});

it('has a silent one that can replace every other', () => {
  for (const name of order) expect(silentLog[name]({ err: new Error('unheard') }, 'unheard')).toBeUndefined();
});
