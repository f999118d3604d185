import { SwitchyardError } from '../errors/switchyard-error.ts';

/** Refuses a JSON Schema: the place in it, and what is expected there. */
export class SchemaError extends SwitchyardError {
  readonly path: readonly string[];
  readonly expected: string;

  /** @param path empty when not known */
  constructor(path: readonly string[], expected: string, cause?: unknown) {
    super('config.invalid', `the JSON Schema can not be used: ${path.length === 0 ? 'it' : path.join('.')} ${expected}`, {
      cause,
      details: { path, expected },
    });
    this.path = path;
    this.expected = expected;
  }
}
