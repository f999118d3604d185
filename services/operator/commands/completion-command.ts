import { Argument, type Command } from 'commander';
import type { CommandDeps } from './dependencies.ts';

export function addCompletionCommand(program: Command, { print }: Pick<CommandDeps, 'print'>): void {
  program
    .command('completion')
    .description('prints a script that completes commands and options: source <(switchyard completion bash)')
    .addArgument(new Argument('<shell>', 'which shell reads it').choices(['bash', 'zsh']))
    .action((shell: string) => print(completionScript(program, shell)));
}

/** Reads completions of bash; where the start file has not begun zsh's own, it begins it. */
const ZSH = ['(( $+functions[compdef] )) || { autoload -U +X compinit && compinit; }', 'autoload -U +X bashcompinit && bashcompinit'];

/** A function of bash, which zsh reads through its own `bashcompinit`. Behind an option's value files are completed. */
function completionScript(program: Command, shell: string): string {
  const commands = commandsBelow(program, []);
  const found = commands.filter(({ path }) => path !== '').map(({ path }) => `      '${path}') found='${path}' ;;`);
  const proposed = commands.map(({ path, words }) => `    '${path}') proposed='${words.join(' ')}' ;;`);
  return [
    ...(shell === 'zsh' ? ZSH : []),
    '_switchyard() {',
    // In zsh `path` is the one of programs, and `words` the line that is completed.
    '  local found= word proposed=',
    '  for word in "${COMP_WORDS[@]:1:$((COMP_CWORD-1))}"; do',
    '    case "${found:+$found }$word" in',
    ...found,
    '    esac',
    '  done',
    '  case "$found" in',
    ...proposed,
    '  esac',
    '  COMPREPLY=($(compgen -W "$proposed" -- "${COMP_WORDS[COMP_CWORD]}"))',
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
