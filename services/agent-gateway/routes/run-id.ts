import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

const RUN_ID = /^[A-Za-z0-9_-]{1,128}$/;

/** Whether a text can be a run's id. Any other must not reach a query. */
export function isRunId(text: string): boolean {
  return RUN_ID.test(text);
}

export function noSuchRun(): SwitchyardError {
  return new SwitchyardError('run.not_found', 'there is no such run');
}
