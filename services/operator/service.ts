import { Command } from 'commander';
import { addCompletionCommand } from './commands/completion-command.ts';
import { addDeadLetterCommands } from './commands/dead-letter-commands.ts';
import type { CommandDeps } from './commands/dependencies.ts';
import { addDoctorCommand } from './commands/doctor-command.ts';
import { addDocumentCommands } from './commands/document-commands.ts';
import { addKeyCommands } from './commands/key-commands.ts';
import { narrowHelp } from './commands/narrow-help.ts';
import { addPlatformCommands } from './commands/platform-commands.ts';
import { addRunCommands } from './commands/run-commands.ts';
import { addSessionCommands } from './commands/session-commands.ts';
import { addStreamCommands } from './commands/stream-commands.ts';
import { SEE_HELP } from './failures.ts';

/** In the root of the package, seen from the built file. */
const SCRIPTS = '../../../scripts';

/** The command line. Actions throw errors with a message for people, and commander's own for a wrong command line. */
export function switchyardProgram(deps: CommandDeps): Command {
  const program = new Command('switchyard')
    .description('Runs Switchyard, talks to it, and operates it.')
    .exitOverride()
    .configureHelp(narrowHelp)
    .showHelpAfterError(`  fix: ${SEE_HELP}`)
    .configureOutput({ writeErr: deps.writeError });
  program.command('start', 'runs the model router and the agent server in one process', { executableFile: `${SCRIPTS}/start.mjs` });
  program.command('cluster', 'runs each service as processes of its own on this machine', { executableFile: `${SCRIPTS}/cluster.mjs` });
  program.command('ask', 'sends one message to the model router, or with --agent to the agent, and prints the answer', {
    executableFile: `${SCRIPTS}/ask.mjs`,
  });
  addDoctorCommand(program, deps);
  addSessionCommands(program, deps);
  addRunCommands(program, deps);
  addKeyCommands(program, deps);
  addPlatformCommands(program, deps);
  addDocumentCommands(program, deps);
  addDeadLetterCommands(program, deps);
  addStreamCommands(program, deps);
  addCompletionCommand(program, deps);
  return program;
}
