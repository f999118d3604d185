import { SwitchyardError } from '../../errors/switchyard-error.ts';

/** @param param the dotted path of the field */
export function invalid(param: string, message: string): SwitchyardError {
  return new SwitchyardError('request.invalid', `${param} ${message}`, { details: { param } });
}
