import { z } from 'zod';
import { check, configInvalid, sentenceOf } from './problems.ts';
import type { Environment } from './secret-ref.ts';

/** Parses settings; an empty value counts as unset. @throws `config.invalid` listing every invalid variable, without its value */
export function readSettings<Shape extends z.ZodRawShape>(shape: Shape, environment: Environment): z.infer<z.ZodObject<Shape>> {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const { value, problems } = check(z.object(shape), given);
  if (value === null) throw configInvalid('the environment', problems.map(sentenceOf));
  return value;
}
