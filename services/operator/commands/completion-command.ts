import { Argument, type Command } from 'commander';
import type { CommandDeps } from './dependencies.ts';

export function addCompletionCommand(program: Command, { print }: Pick<CommandDeps, 'print'>): void {
  program
    .command('completion')
    .description('prints a script that completes commands and options: source <(switchyard completion bash)')
    .addArgument(new Argument('<shell>', 'which shell reads it').choices(['bash', 'zsh']))
    .action((shell: string) => print(completionScript(program, shell)));
}

/** A function of bash, which zsh reads through its own `bashcompinit`. Behind an option's value files are completed. */
function completionScript(program: Command, shell: string): string {
  const commands = commandsBelow(program, []);
  const paths = commands.filter(({ path }) => path !== '').map(({ path }) => `      '${path}') path='${path}' ;;`);
  const words = commands.map(({ path, words: candidates }) => `    '${path}') words='${candidates.join(' ')}' ;;`);
  return [
    ...(shell === 'zsh' ? ['autoload -U +X bashcompinit && bashcompinit'] : []),
    '_switchyard() {',
    '  local path= word words=',
    '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
    '    case "${path:+$path }$word" in',
    ...paths,
    '    esac',
    '  done',
    '  case "$path" in',
    ...words,
    '  esac',
    '  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))',
    '}',
    'complete -o default -F _switchyard switchyard',
  ].join('\n');
}

function commandsBelow(command: Command, names: readonly string[]): { path: string; words: string[] }[] {
  const options = command
    .createHelp()
    .visibleOptions(command)
    .flatMap(({ long }) => (long == null ? [] : [long]));
  const words = [...command.commands.map((one) => one.name()), ...options];
  return [{ path: names.join(' '), words }, ...command.commands.flatMap((one) => commandsBelow(one, [...names, one.name()]))];
}
