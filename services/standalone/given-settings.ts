import type { Environment } from '#shared/config/secret-ref.ts';

/** The sample value in docker-compose.yml: compose requires one. */
const NO_KEY = 'none';

/** The settings that are set: an empty value counts as not set, and so does `OPENAI_API_KEY=none`. */
export function givenSettings(environment: Environment): Record<string, string> {
  const given: Record<string, string> = {};
  for (const [name, value] of Object.entries(environment)) {
    if (value !== undefined && value !== '' && !(name === 'OPENAI_API_KEY' && value === NO_KEY)) given[name] = value;
  }
  return given;
}
