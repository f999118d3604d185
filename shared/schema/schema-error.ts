import { SwitchyardError } from '../errors/switchyard-error.ts';

/** Why a JSON Schema is refused: the place in the schema, and what is wanted there. */
export class SchemaError extends SwitchyardError {
  readonly path: readonly string[];
  readonly wanted: string;

  /** @param path empty when the place is not known */
  constructor(path: readonly string[], wanted: string, cause?: unknown) {
    super('config.invalid', `the JSON Schema can not be used: ${path.length === 0 ? 'it' : path.join('.')} ${wanted}`, { cause, details: { path, wanted } });
    this.path = path;
    this.wanted = wanted;
  }
}
