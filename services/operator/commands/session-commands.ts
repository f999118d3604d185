import type { Command } from 'commander';
import type { TargetOptions } from '../targets.ts';
import { inTheConsole, withAgent } from './agent-of.ts';
import { type CommandDeps, wholeNumber } from './dependencies.ts';
import { withTarget } from './target-options.ts';

type ChatOptions = TargetOptions & { session?: string; message?: string; json?: boolean };
type TailOptions = TargetOptions & { after: number; once?: boolean; json?: boolean };

/** Conversations with a running agent server, through its client. */
export function addSessionCommands(program: Command, { environment, print, write, writeError, readLines }: CommandDeps): void {
  withTarget(program.command('chat'))
    .description('talks to the agent: a message per line, the replies as they are written')
    .option('--session <id>', 'takes a session up again; default: a new one')
    .option('--message <text>', 'sends this, prints the reply and ends')
    .option('--json', 'what is received as lines of JSON')
    .action(async ({ session = '', message, json = false, ...options }: ChatOptions) => {
      const { chat } = await import('../chat/chat.ts');
      const lines = message === undefined ? readLines(json ? '' : '> ') : [message];
      const chatOptions = { sessionId: session === '' ? null : session, lines, json };
      await withAgent(options, environment, inTheConsole, (client) => chat(chatOptions, { client, print, write }));
    });

  const events = program.command('events').description("a session's log");
  withTarget(events.command('tail'))
    .description("prints a session's events, and further ones as they come")
    .argument('<session>', 'its id')
    .option('--after <offset>', 'start with the event after this offset', wholeNumber(-1, Number.MAX_SAFE_INTEGER), -1)
    .option('--once', 'print the events that exist now, then exit')
    .option('--json', 'each event as a line of JSON')
    .action(async (sessionId: string, { after, once = false, json = false, ...options }: TailOptions) => {
      const { tailEvents } = await import('../chat/tail-events.ts');
      await withAgent(options, environment, inTheConsole, (client) => tailEvents({ sessionId, after, once, json }, { client, print, note: writeError }));
    });
}
