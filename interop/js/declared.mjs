// The types of 0.3 as an SDK declares them for TypeScript. The SDK does not check them when it runs; this does.

import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from './harness.mjs';

/** The types of the declaration file in this folder of a package that declares the task of 0.3. */
export function readTypes(packageName, folder) {
  const path = join(process.cwd(), 'node_modules', packageName, folder);
  const files = readdirSync(path).filter((file) => file.endsWith('.d.ts'));
  const texts = files.map((file) => withoutNesting(readFileSync(join(path, file), 'utf8')));
  const text = texts.find((text) => /^interface Task \{[^}]*kind: "task"/ms.test(text));
  expect(text !== undefined, `no file in ${folder} declares the task of 0.3`);
  return declarations(text);
}

/** Without comments, and with a name for the only type in braces: any object. */
function withoutNesting(text) {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/\{\s*\[k: string\]: unknown;?\s*\}/g, 'AnyObject');
}

function declarations(text) {
  const types = new Map();
  for (const [, name, type] of text.matchAll(/^type (\w+) = ([^;]+);/gm)) types.set(name, { alternatives: type });
  for (const [, name, body] of text.matchAll(/^interface (\w+) \{([^{}]*)\}/gm)) {
    const members = [...body.matchAll(/(\w+)(\?)?:\s*([^;]+);/g)];
    const pairs = members.map(([, member, may, type]) => [member, { may: Boolean(may), type }]);
    types.set(name, { members: new Map(pairs) });
  }
  return types;
}

/** Fails if the value is not of the type, or has a member that the type does not declare. */
export function expectDeclared(types, name, value) {
  const wrong = misfit(types, name, value, name);
  expect(wrong === undefined, wrong);
}

/** Why a value is not of a type; `undefined` if it is. */
function misfit(types, type, value, path) {
  const found = type.split('|').map((one) => misfitOne(types, one.trim(), value, path));
  return found.includes(undefined) ? undefined : found.join('; or ');
}

function misfitOne(types, type, value, path) {
  if (type.endsWith('[]')) {
    if (!Array.isArray(value)) return `${path} is not a list`;
    return value.map((item, at) => misfit(types, type.slice(0, -2), item, `${path}[${at}]`)).find((wrong) => wrong);
  }
  if (type.startsWith('"')) {
    return value === JSON.parse(type) ? undefined : `${path} is ${JSON.stringify(value)}, not ${type}`;
  }
  if (type === 'AnyObject') return isObject(value) ? undefined : `${path} is not an object`;
  const declared = types.get(type);
  // Built-in types; other names that are not declared would be, too, and match nothing.
  if (declared === undefined) return typeof value === type ? undefined : `${path} is not a ${type}`;
  if (declared.alternatives) return misfit(types, declared.alternatives, value, path);
  if (!isObject(value)) return `${path} is not an object`;
  const unknown = Object.keys(value).find((member) => !declared.members.has(member));
  if (unknown) return `${path} has a member that ${type} does not: ${unknown}`;
  for (const [member, { may, type }] of declared.members) {
    if (!(member in value)) {
      if (!may) return `${path} has no ${member}`;
      continue;
    }
    const wrong = misfit(types, type, value[member], `${path}.${member}`);
    if (wrong) return wrong;
  }
  return undefined;
}

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
