import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as after } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { openSdkToolServer } from '../../services/effect-worker/test-support/tool-server-doubles.ts';

export interface CountingTools {
  port: number;
  /** How often each tool was called, by the run's key. */
  booked: ReadonlyMap<string, number>;
  looked: ReadonlyMap<string, number>;
  /** Calls that are being answered. */
  readonly inFlight: number;
  close(): Promise<void>;
}

/** The same in a process of its own. */
export interface CountingToolsProcess extends Omit<CountingTools, 'inFlight'> {
  /** Resolves when `booked` and `looked` have all calls that it has got so far. */
  counted(): Promise<void>;
}

/** Long enough for a process to be killed within it. */
const CALL_MS = 150;

/**
 * An MCP server made with the protocol's SDK. `look` may be repeated, `book` may not; calls of both are counted.
 *
 * @param untilAnswered what a call waits for before it is answered
 */
export async function openCountingTools(untilAnswered: () => Promise<void> = () => after(CALL_MS)): Promise<CountingTools> {
  const booked = new Map<string, number>();
  const looked = new Map<string, number>();
  let inFlight = 0;
  const inputSchema = { key: z.string() };
  const counting =
    (times: Map<string, number>, word: string) =>
    async ({ key }: { key: string }) => {
      times.set(key, (times.get(key) ?? 0) + 1);
      inFlight += 1;
      await untilAnswered();
      inFlight -= 1;
      return { content: [{ type: 'text' as const, text: `${word} ${key}` }] };
    };
  const server = await openSdkToolServer((mcp) => {
    mcp.registerTool('book', { description: 'Books it', inputSchema }, counting(booked, 'booked'));
    mcp.registerTool('look', { description: 'Looks it up', inputSchema, annotations: { idempotentHint: true } }, counting(looked, 'looked'));
  });
  return {
    port: server.port,
    booked,
    looked,
    get inFlight() {
      return inFlight;
    },
    close: server.close,
  };
}

const message = z.union([z.object({ port: z.number() }), z.object({ tool: z.enum(['book', 'look']), key: z.string() }), z.object({ isEcho: z.literal(true) })]);

/**
 * For tests whose process has more to do than it gets CPU for: a worker would wait for a connection to a server in it until its time is over.
 */
export async function openCountingToolsProcess(): Promise<CountingToolsProcess> {
  const calls = { book: new Map<string, number>(), look: new Map<string, number>() };
  const echoes: (() => void)[] = [];
  const child = fork(fileURLToPath(new URL('counting-tools-process.mjs', import.meta.url)), { execArgv: [] });
  const exited = once(child, 'exit');
  const listening = new Promise<number>((resolve, reject) => {
    exited.then(() => reject(new Error('the tool server has ended')), reject);
    child.on('message', (sent) => {
      const read = message.parse(sent);
      if ('port' in read) resolve(read.port);
      else if ('isEcho' in read) echoes.shift()?.();
      else calls[read.tool].set(read.key, (calls[read.tool].get(read.key) ?? 0) + 1);
    });
  });
  return {
    port: await listening,
    booked: calls.book,
    looked: calls.look,
    // Messages come in the order in which they were sent.
    counted: () =>
      new Promise((resolve) => {
        echoes.push(resolve);
        child.send('echo');
      }),
    close: async () => {
      child.disconnect();
      await exited;
    },
  };
}
