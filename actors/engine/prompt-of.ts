import type { Documents } from '#shared/config/bundle-body.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

/** The text of a prompt document. @throws `config.invalid` */
export function promptOf({ prompts }: Pick<Documents, 'prompts'>, { id, version }: { id: string; version: number }): string {
  const prompt = prompts.find((one) => one.id === id && one.version === version);
  if (prompt === undefined) throw new SwitchyardError('config.invalid', `the configuration lacks the prompt ${id} version ${version}`);
  return prompt.text;
}
