import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import { stopSignal } from './stop-signal.ts';

function listening() {
  const source = new EventEmitter();
  const exits: number[] = [];
  let nowMs = 5_000;
  const stopped = stopSignal({ source, clock: { nowMs: () => nowMs }, exit: (code) => exits.push(code) });
  const send = (signal: NodeJS.Signals, atMs: number) => {
    nowMs = 5_000 + atMs;
    source.emit(signal);
  };
  return { stopped, exits, send };
}

it('ignores repeats within a second, of either signal, so that one Ctrl-C that arrives twice still drains', async () => {
  const { stopped, exits, send } = listening();

  send('SIGINT', 0);
  send('SIGINT', 1);
  send('SIGTERM', 999);

  expect(await stopped).toBe('SIGINT');
  expect(exits).toEqual([]);
});

it('ends the process at once on a signal at least a second after the first', async () => {
  const interrupted = listening();
  interrupted.send('SIGTERM', 0);
  interrupted.send('SIGINT', 1_000);
  expect(interrupted.exits).toEqual([130]);

  const terminated = listening();
  terminated.send('SIGINT', 0);
  terminated.send('SIGINT', 500);
  terminated.send('SIGTERM', 60_000);
  expect(terminated.exits).toEqual([143]);
});

it('waits for a signal, and returns its name', async () => {
  const { stopped, exits, send } = listening();
  expect(await Promise.race([stopped, Promise.resolve('nothing yet')])).toBe('nothing yet');

  send('SIGTERM', 0);

  expect(await stopped).toBe('SIGTERM');
  expect(exits).toEqual([]);
});

it('listens to the process itself by default', async () => {
  const known = new Set<unknown>([...process.listeners('SIGTERM'), ...process.listeners('SIGINT')]);

  const stopped = stopSignal();

  // Emitted by the test: the test runner handles the same signals.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    const ours = process.listeners(signal).filter((listener) => !known.has(listener));
    expect(ours).toHaveLength(1);
    for (const listener of ours) {
      listener(signal);
      process.removeListener(signal, listener);
    }
  }
  expect(await stopped).toBe('SIGINT');
});
