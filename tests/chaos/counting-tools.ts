import { setTimeout as after } from 'node:timers/promises';
import { z } from 'zod';
import { openSdkToolServer } from '../../services/effect-worker/test-support/tool-server-doubles.ts';
import { openServerProcess } from './server-process.ts';

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

const call = z.object({ tool: z.enum(['book', 'look']), key: z.string() });

/**
 * For tests whose process has more to do than it gets CPU for: a worker would wait for a connection to a server in it until its time is over.
 */
export async function openCountingToolsProcess(): Promise<CountingToolsProcess> {
  const calls = { book: new Map<string, number>(), look: new Map<string, number>() };
  const { port, caughtUp, close } = await openServerProcess('counting-tools-process.mjs', (sent) => {
    const { tool, key } = call.parse(sent);
    calls[tool].set(key, (calls[tool].get(key) ?? 0) + 1);
  });
  return { port, booked: calls.book, looked: calls.look, counted: caughtUp, close };
}
