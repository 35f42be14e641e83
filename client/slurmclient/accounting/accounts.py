"""Accounts."""

from collections.abc import Iterable, Mapping

from slurmclient.accounting.records import Records
from slurmclient.api.operation import Value
from slurmclient.calls.speaker import Outcome
from slurmclient.models import Account, Association, User


class Accounts(Records[Account]):
    """The accounts, or projects."""

    async def add(
        self,
        *names: str,
        description: str = "",
        organization: str = "",
        clusters: Iterable[str] = (),
        **association: object,
    ) -> Outcome:
        """Create accounts with their associations.

        Args:
            names: Theirs.
            description: Of each; "": its name.
            organization: Of each; "": its parent's.
            clusters: Where; by default on all.
            association: Slurm's fields, as `fairshare`, `maxjobs`, `parent`.
        """
        condition = {
            "accounts": list(names),
            "clusters": list(clusters) or None,
            "association": association or None,
        }
        account = {"description": description or None, "organization": organization or None}
        return await self._add("slurmdb_post_accounts_association", condition, account)

    async def _add(
        self, operation: str, condition: Mapping[str, object], account: Mapping[str, object]
    ) -> Outcome:
        body = {"association_condition": condition, "account": account}
        _, outcome = await self._speaker.write(operation, body=body)
        return outcome


class Users(Records[User]):
    """The users."""

    async def add(
        self,
        *names: str,
        accounts: Iterable[str],
        default_account: str = "",
        clusters: Iterable[str] = (),
        **association: object,
    ) -> Outcome:
        """Create users with their associations, or give users more of them.

        Args:
            names: Theirs.
            accounts: Which they belong to.
            default_account: One of these; "": the first for a new user.
            clusters: Where; by default on all.
            association: Slurm's fields, as `fairshare`, `maxjobs`.
        """
        body = {
            "association_condition": {
                "accounts": list(accounts),
                "users": list(names),
                "clusters": list(clusters) or None,
                "association": association or None,
            },
            "user": {"defaultaccount": default_account or None},
        }
        _, outcome = await self._speaker.write("slurmdb_post_users_association", body=body)
        return outcome


class Associations(Records[Association]):
    """The associations: a user, in an account, on a cluster, in a partition or all."""

    async def delete_where(self, **query: Value) -> Outcome:
        """Remove all that match, by `user`, `account`, `cluster`, `partition` and others.

        Raises:
            ValueError: no filter: that would be every association.
        """
        if not any(query.values()):
            raise ValueError("say which associations to remove: user=…, account=…, cluster=…")
        _, outcome = await self._speaker.write("slurmdb_delete_associations", query=query)
        return outcome
