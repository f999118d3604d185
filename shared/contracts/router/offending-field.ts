import type { z } from 'zod';

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

/** The first invalid field of a request: `param` is its dotted path, such as `messages[0].content`; `""` is the whole body. */
export function offendingField(error: z.ZodError): { param: string; message: string } {
  const [issue] = error.issues;
  if (issue === undefined) return { param: '', message: 'is not accepted' };
  const found = innermost(issue, issue.path);
  return { param: dotted(found.path), message: found.issue.message };
}

/** If one shape of a union fits up to an inner field, that field's error is more precise than "none of the forms". */
function innermost(issue: Issue, path: Path): { issue: Issue; path: Path } {
  if (issue.code !== 'invalid_union') return { issue, path };
  for (const [inner] of issue.errors) {
    if (inner !== undefined && inner.path.length > 0) return innermost(inner, [...path, ...inner.path]);
  }
  return { issue, path };
}

function dotted(path: Path): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    return text === '' ? String(step) : `${text}.${String(step)}`;
  }, '');
}
