import type { Environment } from '#shared/config/secret-ref.ts';

/** What the sample environment of docker-compose.yml has for a key that is not there: compose can't start without a value. */
const NO_KEY = 'none';

/** The settings that are given: an empty value is none, and neither is `OPENAI_API_KEY=none`. */
export function givenSettings(environment: Environment): Record<string, string> {
  const given: Record<string, string> = {};
  for (const [name, value] of Object.entries(environment)) {
    if (value !== undefined && value !== '' && !(name === 'OPENAI_API_KEY' && value === NO_KEY)) given[name] = value;
  }
  return given;
}
