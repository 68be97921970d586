// The doors together: which path leads where, who may go through, and the one form in which everything that fails is told.

import { Hono } from "hono";
import { asFailure, Failure } from "../errors.ts";
import { aspRoutes } from "./asp.ts";
import { authorize } from "./auth.ts";
import { conversationRoutes } from "./conversations.ts";
import { type Env, factsOf, type Parts, type Route } from "./door.ts";
import { eventRoutes } from "./events.ts";
import { linkRoutes } from "./link.ts";
import { openaiRoutes } from "./openai.ts";
import { settingsRoutes } from "./settings.ts";
import { statusRoutes } from "./status.ts";

export function createApp(parts: Parts): Hono<Env> {
  const app = new Hono<Env>();
  const routes = allRoutes(parts);
  let description: Promise<unknown> | undefined;
  routes.push({
    method: "GET",
    path: "/openapi.json",
    handle: async (door) => {
      description ??= import("./openapi.ts").then(({ describeWire }) => describeWire(routes, parts.version));
      return door.json(await description as object);
    },
  });

  app.use("/agents/:agent/*", async (door, next) => {
    door.set("agent", authorize(parts.agents, door.req.param("agent"), door.req.header("authorization")));
    checkPath(door.req.url);
    await next();
    door.res.headers.set("cache-control", "no-store");
  });
  for (const { method, path, handle } of routes) app.on(method, path, handle);
  for (const path of new Set(routes.map((route) => route.path))) {
    const allow = routes.filter((route) => route.path === path).map((route) => route.method);
    app.all(
      path,
      (door) =>
        refused(new Failure("method_not_allowed", { method: door.req.method }), { allow: allow.join(", ") }),
    );
  }
  app.notFound((door) => {
    checkPath(door.req.url);
    throw new Failure("not_found");
  });
  app.onError((thrown, door) => {
    const failure = asFailure(thrown);
    if (failure.code === "internal") {
      parts.notify("error", "A request failed inside.", {
        method: door.req.method,
        ...factsOf(failure.cause),
      });
    }
    return refused(failure);
  });
  return app;
}

export function allRoutes(parts: Parts): Route[] {
  return [
    ...statusRoutes(parts),
    ...aspRoutes(parts),
    ...conversationRoutes(parts),
    ...eventRoutes(parts),
    ...settingsRoutes(),
    ...linkRoutes(parts),
    ...openaiRoutes(parts),
  ];
}

/** A failure as a response: its status and the error form. */
export function refused(thrown: unknown, headers: Record<string, string> = {}): Response {
  const failure = asFailure(thrown);
  return Response.json(failure.form(), {
    status: failure.status,
    headers: { ...(failure.status === 401 ? { "www-authenticate": "Bearer" } : {}), ...headers },
  });
}

/** Throws `invalid` for a path whose percent-encoding is broken: it would name something else than was meant. */
function checkPath(url: string): void {
  const path = url.slice(0, url.search(/[?#]|$/));
  if (!path.includes("%")) return;
  try {
    decodeURIComponent(path);
  } catch (error) {
    throw new Failure("invalid", { say: "The path is not percent-encoded UTF-8; encode it again." }, {
      cause: error,
    });
  }
}
