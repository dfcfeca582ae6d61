"""Translations put to the API server, and what it said."""

import devices.models.claim
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('devices', '0011_routes'),
        ('tenants', '0006_account_links'),
    ]

    operations = [
        migrations.AlterField(
            model_name='templateversion',
            name='retired_by',
            field=models.UUIDField(help_text='Empty where a newer version took its place.', null=True),
        ),
        migrations.CreateModel(
            name='Proof',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', models.CharField(default=devices.models.claim.new_public_id, editable=False, max_length=12, unique=True)),
                ('asked_by', models.UUIDField(help_text='Opaque person id; nobody else reads the answer.')),
                ('asked_at', models.DateTimeField()),
                ('request_id', models.CharField(max_length=64)),
                ('questions', models.JSONField(help_text='What each is, whether from before, and the object.')),
                ('answers', models.JSONField(default=list, help_text='By question: accepted, code and words.')),
                ('answered_at', models.DateTimeField(null=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
            ],
            options={
                'ordering': ['-pk'],
                'indexes': [models.Index(fields=['asked_at'], name='proofs_by_age')],
            },
        ),
    ]
