import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

/** A server of a test in a process of its own, which answers while the process of the test has more to do than it gets CPU for. */
export interface ServerProcess {
  port: number;
  /** Resolves when all that the server has sent so far was taken. */
  caughtUp(): Promise<void>;
  close(): Promise<void>;
}

const ownMessage = z.union([z.object({ port: z.number() }), z.object({ isEcho: z.literal(true) })]);

/**
 * @param program of this folder: it sends `{ port }` over IPC once it listens, `{ isEcho: true }` for each message that it gets, and ends when it is
 *   disconnected
 * @param take gets what else it sends
 */
export async function openServerProcess(program: string, take: (sent: unknown) => void): Promise<ServerProcess> {
  const echoes: (() => void)[] = [];
  const child = fork(fileURLToPath(new URL(program, import.meta.url)), { execArgv: [] });
  const exited = once(child, 'exit');
  const listening = new Promise<number>((resolve, reject) => {
    exited.then(() => reject(new Error(`${program} has ended`)), reject);
    child.on('message', (sent) => {
      const { data: own } = ownMessage.safeParse(sent);
      if (own === undefined) take(sent);
      else if ('port' in own) resolve(own.port);
      else echoes.shift()?.();
    });
  });
  return {
    port: await listening,
    // Messages come in the order in which they were sent.
    caughtUp: () =>
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
